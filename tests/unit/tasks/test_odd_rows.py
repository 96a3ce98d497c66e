"""Rows with more or fewer columns than the others are never misread: they are listed and left out, or the run stops."""

import json
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.tasks.labelling.job import ClassifierData, TaggerData
from heedful.tasks.translation.corpus import read_pairs
from heedful.tasks.translation.job import TranslationData

PAIRS = [(f"the dog {n}", f"der Hund {n}") for n in range(200)]
TSV = [f"{a}\t{b}" for a, b in PAIRS]
LABELS = [f"{'ab'[n % 2]}\t{a}" for n, (a, _) in enumerate(PAIRS)]


def prepared(job: type, folder: Path, name: str, lines: list[str], **options: Any) -> Any:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    field = "tsv" if job is TranslationData else "data"
    data = job(**{field: (str(folder / name),)}, **options)
    data.check()
    (folder / "run").mkdir(exist_ok=True)
    return data.prepare(folder / "run", {"vocabulary_size": 300}, lambda *_: None, None)


def listed(folder: Path) -> list[tuple[str, int]]:
    lines = (folder / "run" / "data-report.jsonl").read_text(encoding="utf-8").splitlines()
    return [(entry["rule"], entry["line"]) for entry in map(json.loads, lines) if "rule" in entry]


def texts(job: Any) -> str:
    data, decode = job.data, job.tokenizer.decode
    if isinstance(job.data.train, type(job.data.valid)) and hasattr(data.train, "source"):
        rows = [(part.source(n), part.target(n)) for part in (data.train, data.valid) for n in range(len(part))]
        return "\n".join("\t".join(decode(side.tolist()) for side in row) for row in rows)
    return "\n".join(decode(part.ids[n].tolist()) for part in (data.train, data.valid) for n in range(len(part.ids)))


@pytest.mark.parametrize("header", [[], ["source\ttarget"], ["en\tde"]])
def test_a_stray_tab_is_listed_and_left_out(header: list[str], tmp_path: Path) -> None:
    job = prepared(TranslationData, tmp_path, "a.tsv", [*header, *TSV, "blue\tbig\tblau gross", "red\trot\t"])
    assert listed(tmp_path) == [("number of columns", len(header) + 201)]
    assert any("number of columns 1" in message for message in job.messages)
    found = texts(job).splitlines()
    assert (
        "red\trot" in found and len(found) == 201
    )  # a blank cell at the end of a row holds nothing that could be lost


def test_an_over_long_row_is_cut_before_a_character(tmp_path: Path) -> None:
    job = prepared(ClassifierData, tmp_path, "a.tsv", [*LABELS, "a\t" + "ä" * 32_768, "b\tx" + "ö" * 32_768])
    assert listed(tmp_path) == [("over-long", 201), ("over-long", 202)]
    assert "\ufffd" not in texts(job)


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        (
            "a.csv",
            ["source,target", *(f"Hello {n}, my friend,Guten Tag {n}" for n in range(150))],
            r"a\.csv: 150 of 150 rows do not have the 2 columns of its header; the first is line 2, which has more: "
            r"'Hello 0, my friend,Guten Tag 0'; put texts that hold a comma between quotation marks",
        ),
        (
            "a.tsv",
            [line.replace("the ", "the\t") if n % 5 == 1 else line for n, line in enumerate(TSV)],
            r"40 of 200 rows do not have the 2 columns that most of its first rows have; the first is line 2, .*"
            r"--columns 1,2",
        ),
        (
            "a.tsv",
            [*TSV[:100], *(f"{a} {b}" for a, b in PAIRS)],
            r"200 of 300 rows .* line 101, which has 1: 'the dog 0",
        ),
    ],
)
def test_too_many_of_them_stop_the_run(name: str, lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        prepared(TranslationData, tmp_path, name, lines)


def test_columns_by_number_read_the_rows_of_the_usual_number(tmp_path: Path) -> None:
    lines = [line.replace("the ", "the\t") if n % 5 == 1 else line for n, line in enumerate(TSV)]
    job = prepared(TranslationData, tmp_path, "a.tsv", lines, columns="1,2")
    assert len(listed(tmp_path)) == 40 and len(texts(job).splitlines()) == 160
    rows = ["source,target", *(f"Hello, {a},{b}" for a, b in PAIRS)]  # the header does not count the columns then
    job = prepared(TranslationData, tmp_path, "b.csv", rows, columns="2,3")
    assert "the dog 7\tder Hund 7" in texts(job).splitlines()


def test_another_column_in_every_row_is_not_odd(tmp_path: Path) -> None:
    job = prepared(TranslationData, tmp_path, "a.tsv", [f"{line}\tCC-BY (France) #{n}" for n, line in enumerate(TSV)])
    assert listed(tmp_path) == [] and "France" not in texts(job)
    job = prepared(ClassifierData, tmp_path, "b.tsv", [f"{line}\tthe cat {n}" for n, line in enumerate(LABELS)])
    assert listed(tmp_path) == [] and job.data.train.has_pairs


def test_quoted_line_breaks_do_not_change_the_number_of_columns(tmp_path: Path) -> None:
    rows = [f'"{a},\nwith ""quotes"" and\n\nlines, {n}","{b}"' for n, (a, b) in enumerate(PAIRS)]
    job = prepared(TranslationData, tmp_path, "a.csv", rows)
    assert len(texts(job).splitlines()) == 200
    assert {rule for rule, _ in listed(tmp_path)} == {"control characters"}


def test_a_tab_inside_a_labelled_text_does_not_make_a_pair(tmp_path: Path) -> None:
    job = prepared(ClassifierData, tmp_path, "a.tsv", [*LABELS, "a\tone text\twith a tab"])
    assert listed(tmp_path) == [("number of columns", 201)]
    assert not job.data.train.has_pairs and "one text" not in texts(job)
    lines = [line.replace("dog ", "dog\t") if n % 7 == 1 else line for n, line in enumerate(LABELS)]
    with pytest.raises(UserError, match=r"29 of 200 rows do not have the 2 columns .* line 2"):
        prepared(ClassifierData, tmp_path, "b.tsv", lines)


def test_a_test_set_with_an_odd_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("\n".join([*TSV, "blue\tbig\tblau"]), encoding="utf-8")
    with pytest.raises(UserError, match=r"line 201 of .* does not have as many columns"):
        read_pairs(str(tmp_path / "a.tsv"))


def test_several_labels_of_fasttext(tmp_path: Path) -> None:
    lines = [f"__label__{'ab'[n % 2]} {a}" for n, (a, _) in enumerate(PAIRS)]
    job = prepared(ClassifierData, tmp_path, "a.txt", [*lines, "__label__a __label__b both"])
    assert listed(tmp_path) == [("several labels", 201)] and "both" not in texts(job)
    with pytest.raises(
        UserError, match=r"200 of 200 lines have more than one __label__.* line 1: '__label__a __label__x"
    ):
        prepared(ClassifierData, tmp_path, "b.txt", [line.replace(" the", " __label__x the") for line in lines])


@pytest.mark.parametrize("place", [0, 7, 201])
@pytest.mark.parametrize("odd", ["DESC:manner", "DESC how far", "how far"])
@pytest.mark.parametrize("marks", [("DESC:manner", "NUM:dist"), ("__label__a", "__label__b")])
def test_a_line_without_its_label_is_left_out(tmp_path: Path, marks: tuple[str, str], odd: str, place: int) -> None:
    lines = [f"{marks[n % 2]} {a}" for n, (a, _) in enumerate(PAIRS)]
    job = prepared(ClassifierData, tmp_path, "a.txt", [*lines[:place], odd, *lines[place:]])
    assert listed(tmp_path) == [("missing column", min(place, 200) + 1)]
    assert job.data.labels == marks and "far" not in texts(job)


@pytest.mark.parametrize("place", [0, 7])
def test_a_word_without_its_tag_is_left_out(tmp_path: Path, place: int) -> None:
    lines = [line for n in range(200) for line in (f"dog{n} x NN", f"runs{n} x VB", "")]
    prepared(TaggerData, tmp_path, "a.txt", [*lines[:place], "alone", *lines[place:]])
    assert listed(tmp_path) == [("missing column", place + 1)]


CONLLU = [
    "# sent_id = {n}",
    "# text = the dog can't run to the sea today",
    "1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_",
    "2\tdog{n}\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_",
    "3-4\tcan't\t_\t_\t_\t_\t_\t_\t_\t_",
    "3\tca\tcan\tAUX\tMD\t_\t5\taux\t_\t_",
    "4\tn't\tnot\tPART\tRB\t_\t5\tadvmod\t_\t_",
    "4.1\trun\trun\tVERB\tVB\t_\t_\t_\t_\t_",
    "5\t#1\trun\tVERB\tVB\t_\t0\troot\t_\t_",
    "",
]


def test_conllu_is_read_by_its_columns(tmp_path: Path) -> None:
    lines = [line.format(n=n) for n in range(60) for line in CONLLU]
    job = prepared(TaggerData, tmp_path, "a.conllu", lines)
    assert job.data.labels == ("AUX", "DET", "NOUN", "PART", "VERB")
    assert "the dog7 ca n't #1" in texts(job).splitlines()
    assert any("a.conllu is read as CoNLL-U: word is column 2, tag is column 4" in text for text in job.messages)
    assert listed(tmp_path) == []
    assert prepared(TaggerData, tmp_path, "a.txt", lines, columns="form,xpos").data.labels[0] == "DT"
    assert prepared(TaggerData, tmp_path, "a.txt", lines, columns="2,8").data.labels[-1] == "root"
    with pytest.raises(UserError, match="does not have all of the columns form, tag: it has id, form"):
        prepared(TaggerData, tmp_path, "a.txt", lines, columns="form,tag")


def test_numbers_are_not_words_beside_other_columns(tmp_path: Path) -> None:
    lines = [line for n in range(60) for line in (f"{n % 9}\tdog{n}\tNOUN", "")]
    with pytest.raises(UserError, match=r"column 1 would be the word, but holds nothing but numbers.*--columns"):
        prepared(TaggerData, tmp_path, "a.tsv", lines)
    assert prepared(TaggerData, tmp_path, "a.tsv", [*lines, "1\tran\tVERB"], columns="2,3")
    scored = [f"{'ab'[n % 2]}\t{n}\tthe dog {n}" for n in range(60)]
    with pytest.raises(UserError, match="column 2 would be the text"):
        prepared(ClassifierData, tmp_path, "b.tsv", scored)
    stars = [f"{n % 5}\tthe dog {n}\tthe cat {n}" for n in range(60)]
    assert prepared(ClassifierData, tmp_path, "c.tsv", stars).data.labels == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize("separator", ["\t", " "])
def test_comments_among_tagged_words(separator: str, tmp_path: Path) -> None:
    sentence = ["# a comment, of some words", f"dog{{n}}{separator}N", f"#{separator}S", f"runs{separator}V", ""]
    job = prepared(TaggerData, tmp_path, "a.txt", [line.format(n=n) for n in range(30) for line in sentence])
    assert job.data.labels == ("N", "S", "V")
    assert {rule for rule, _ in listed(tmp_path)} == {"comment"}


@pytest.mark.parametrize("job", [TranslationData, ClassifierData])
def test_broken_json_is_called_so(job: type, tmp_path: Path) -> None:
    names = ("source", "target") if job is TranslationData else ("label", "text")
    rows = [json.dumps(dict(zip(names, line.split("\t"), strict=True))) for line in LABELS]
    prepared(job, tmp_path, "a.jsonl", [*rows, rows[0][:-5], json.dumps({names[0]: "alone"})])
    assert listed(tmp_path) == [("not JSON", 201), ("missing column", 202)]


def objects(job: type) -> list[dict[str, Any]]:
    if job is TaggerData:
        return [{"tokens": [a, "runs", f"x{n}"], "tags": ["N", "V", "X"]} for n, (a, _) in enumerate(PAIRS)]
    names = ("source", "target") if job is TranslationData else ("label", "text")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in (TSV if job is TranslationData else LABELS)]


@pytest.mark.parametrize(
    ("job", "odd", "rule", "why"),
    [
        (TaggerData, {"tokens": ["a", "b", "c"], "tags": ["N", "V"]}, "list lengths", "tokens has 3, tags has 2"),
        (TaggerData, {"tokens": ["a", "b"], "tags": ["N", None]}, "null", "tags is null"),
        (TaggerData, {"tokens": ["a", ["b"]], "tags": ["N", "V"]}, "not text", "tokens is a list, where a text"),
        (TranslationData, {"source": "a", "target": None}, "null", "target is null"),
        (TranslationData, {"source": None}, "null", "source is null"),
        (TranslationData, {"source": ["a"], "target": "b"}, "not text", "source is a list, where a text was expected"),
        (
            ClassifierData,
            {"label": "a", "text": {"x": "b"}},
            "not text",
            "text is an object, where a text was expected",
        ),
        (ClassifierData, {"label": None, "text": "b"}, "null", "label is null"),
    ],
)
def test_values_of_json_that_are_no_texts_are_called_so(
    job: type, odd: dict[str, Any], rule: str, why: str, tmp_path: Path
) -> None:
    rows = [json.dumps(each) for each in objects(job)]
    prepared(job, tmp_path, "a.jsonl", [*rows, json.dumps(odd)])
    assert listed(tmp_path) == [(rule, 201)]
    mixed = [json.dumps(odd) if n % 2 else row for n, row in enumerate(rows)]
    with pytest.raises(UserError, match=rf"100 of 200 objects cannot be read; the first is line 2, where .*{why}"):
        prepared(job, tmp_path, "b.jsonl", mixed)
    if job is TranslationData:
        (tmp_path / "c.jsonl").write_text("\n".join([*rows, json.dumps(odd)]), encoding="utf-8")
        with pytest.raises(UserError, match=r"line 201 of .* has (null|a list or an object) in the place of a text"):
            read_pairs(str(tmp_path / "c.jsonl"))


def test_a_second_text_that_is_null_is_none(tmp_path: Path) -> None:
    rows = [json.dumps({**each, "text2": None if n % 3 else "dog"}) for n, each in enumerate(objects(ClassifierData))]
    job = prepared(ClassifierData, tmp_path, "a.jsonl", rows)
    assert listed(tmp_path) == [] and job.data.train.has_pairs and not job.data.train.has_only_pairs


def test_columns_that_cannot_be_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.tsv: there is no column 9: its rows have 2, as in 'the dog 0\\tder"):
        prepared(TranslationData, tmp_path, "a.tsv", TSV, columns="1,9")
    with pytest.raises(UserError, match="'1,1' names a column twice"):
        prepared(TranslationData, tmp_path, "a.tsv", TSV, columns="1,1")


@pytest.mark.parametrize(
    "header",
    [
        "en;ru",
        "English;German",
        "SPANISH;norwegian bokmål",
        "eng;deu",
        "en_US;de-DE",
        "EN;zh-Hans",
        "Chinese (Traditional) ; Portuguese",
        "en_GB;en_US",
        "Cantonese;Low German",
    ],
)
def test_two_languages_are_a_header(header: str, tmp_path: Path) -> None:
    said = "with a header: source is column 1"
    job = prepared(TranslationData, tmp_path, "a.csv", [header, *(f"{a};{b}" for a, b in PAIRS)])
    assert any(said in message for message in job.messages)
    job = prepared(TranslationData, tmp_path, "a.tsv", [header.replace(";", "\t"), *TSV])
    assert any(said in message for message in job.messages) and len(texts(job).splitlines()) == 200


@pytest.mark.parametrize(
    "rows",
    [
        ["to\tzu", "so\tso", "is\tes"],
        ["English\tEnglisch"],
        ["English\tenglish"],
        ["Farsi\tPersian"],
        ["Welsh\tBreton", "Irish\tManx"],
        ["I speak English\tGerman"],
        ["dog\tder"],
        ["to-do\tno-go"],
    ],
)
def test_two_languages_are_no_header_where_they_may_be_a_pair(rows: list[str], tmp_path: Path) -> None:
    job = prepared(TranslationData, tmp_path, "a.tsv", [*rows, *TSV])
    assert rows[0] in texts(job).splitlines() and listed(tmp_path) == []


def test_names_of_languages_tell_the_columns(tmp_path: Path) -> None:
    lines = ["id\tGerman\tEnglish", *(f"{n}\t{b}\t{a}" for n, (a, b) in enumerate(PAIRS))]
    job = prepared(TranslationData, tmp_path, "a.en-de.tsv", lines)
    assert "source is column 3, target is column 2" in " ".join(job.messages)
    job = prepared(TranslationData, tmp_path, "a.tsv", lines, source_language="en-GB", target_language="deu")
    assert "source is column 3, target is column 2" in " ".join(job.messages)
