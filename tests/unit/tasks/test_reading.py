"""Files as users have them: in other encodings, as tables of many kinds, or no text at all."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.prepared.small_data import warning_of_few
from heedful.tasks.labelling.job import ClassifierData, TaggerData
from heedful.tasks.language_modeling.job import TextData
from heedful.tasks.masked_modeling.job import MaskedTextData
from heedful.tasks.translation.corpus import read_pairs
from heedful.tasks.translation.job import TranslationData
from heedful.text.row_options import RowOptions

WORDS = ["Bär", "Übung", "für", "groß", "Café", "dog", "house", "tree", "sea", "moon"]
SENTENCES = [f"{WORDS[n % 10]} {WORDS[(3 * n + 1) % 10]} {WORDS[(n // 10) % 10]} {n}" for n in range(120)]
PLAIN = {
    TranslationData: "".join(f"{n} words\t{text}\n" for n, text in enumerate(SENTENCES)),
    ClassifierData: "".join(f"{'ab'[n % 2]}\t{text}\n" for n, text in enumerate(SENTENCES)),
    TaggerData: "\n".join("".join(f"{word}\t{len(word)}\n" for word in text.split()) for text in SENTENCES),
    TextData: "\n".join(SENTENCES) + "\n",
    MaskedTextData: "\n".join(SENTENCES) + "\n",
}
FIELD = {TranslationData: "tsv", TextData: "text", MaskedTextData: "text"}


def prepared(job: Any, folder: Path) -> Any:
    job.check()
    folder.mkdir(exist_ok=True)
    return job.prepare(folder, {"vocabulary_size": 300}, lambda *_: None, None)


def contents(folder: Path) -> dict[str, bytes]:
    """The token ids, lengths and labels that came of some files."""
    files = ("*.bin", "*.npy", "tokenizer.json")
    return {str(path.relative_to(folder)): path.read_bytes() for name in files for path in sorted(folder.rglob(name))}


def read(job: type, folder: Path, name: str, content: bytes, **options: Any) -> dict[str, bytes]:
    path = folder / name
    path.write_bytes(content)
    out = folder / f"{job.__name__}-{name}-run"
    prepared(job(**{FIELD.get(job, "data"): (str(path),)}, **options), out)
    return contents(out / "prepared")


@pytest.mark.parametrize("job", PLAIN, ids=lambda job: job.__name__)
def test_another_encoding_gives_what_utf_8_gives(job: type, tmp_path: Path) -> None:
    usual = read(job, tmp_path, "utf8.txt", PLAIN[job].encode())
    assert len(usual) >= 3
    assert read(job, tmp_path, "latin.txt", PLAIN[job].encode("latin-1"), encoding="iso-8859-1") == usual
    assert read(job, tmp_path, "wide.txt", PLAIN[job].encode("utf-16")) == usual  # by its byte order mark
    with pytest.raises(UserError, match=r"wrong\.txt: .* lines are not valid UTF-8, and it looks like ISO-8859-1: .*"):
        read(job, tmp_path, "wrong.txt", PLAIN[job].encode("latin-1"))
    with pytest.raises(UserError, match="'latin-17' is not the name of an encoding: did you mean 'latin-1'"):
        read(job, tmp_path, "latin.txt", b"", encoding="latin-17")


@pytest.mark.parametrize("job", PLAIN, ids=lambda job: job.__name__)
def test_the_encoding_belongs_to_what_a_run_is_known_by(job: type, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(PLAIN[job].replace("ä", "ae").encode("ascii", "ignore"))
    keys = {
        prepared(job(**{FIELD.get(job, "data"): (str(tmp_path / "a"),)}, encoding=name), tmp_path / f"run-{name}").key
        for name in (None, "iso-8859-1", "cp1251")
    }
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04" + bytes(range(256)), "is a zip archive"),
        (b"\x28\xb5\x2f\xfd" + b"abc", "is a zstd file"),
        (b"%PDF-1.4\nabc", "is a PDF document"),
        (b"\x00\x01\x02\nabc\x00\n" * 50, "is not a text file: 100 of 100 lines hold NUL bytes"),
        (gzip.compress(b"PK\x03\x04", mtime=0), "is a zip archive"),
    ],
    ids=["zip", "zstd", "pdf", "binary", "zip in gzip"],
)
@pytest.mark.parametrize("job", PLAIN, ids=lambda job: job.__name__)
def test_what_is_not_text_is_refused_in_words(job: type, content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"file.txt {message}"):
        read(job, tmp_path, "file.txt", content)


def test_a_few_bad_lines_are_still_listed_and_left_out(tmp_path: Path) -> None:
    lines = PLAIN[TranslationData].encode().splitlines()
    content = b"\n".join([*lines, b"bad\xff\tline"])  # one of 121
    (tmp_path / "a.tsv").write_bytes(content)
    job = prepared(TranslationData(tsv=(str(tmp_path / "a.tsv"),)), tmp_path / "run")
    assert any("invalid UTF-8 1" in message for message in job.messages)


@pytest.mark.parametrize(("invalid", "stops"), [(10, False), (11, True)])
def test_a_run_stops_above_one_invalid_line_in_a_hundred(tmp_path: Path, invalid: int, stops: bool) -> None:
    text = "words\tBär Übung für groß Café"
    lines = [f"{n} {text} {n}\n".encode("latin-1" if n < invalid else "utf-8") for n in range(1000)]
    (tmp_path / "a.tsv").write_bytes(b"".join(lines))
    job = TranslationData(tsv=(str(tmp_path / "a.tsv"),))
    if stops:
        with pytest.raises(UserError, match="11 of 1,000 lines are not valid UTF-8, and it looks like ISO-8859-1"):
            prepared(job, tmp_path / "run")
    else:
        assert any("invalid UTF-8 10" in message for message in prepared(job, tmp_path / "run").messages)


@pytest.mark.parametrize(("count", "warns"), [(999, True), (1000, False)])
def test_fewer_than_a_thousand_examples_are_few(count: int, warns: bool) -> None:
    assert bool(warning_of_few(count, "pairs")) == warns


@pytest.mark.parametrize("job", PLAIN, ids=lambda job: job.__name__)
def test_little_data_is_warned_of(job: type, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(PLAIN[job], encoding="utf-8")
    messages = prepared(job(**{FIELD.get(job, "data"): (str(tmp_path / "a"),)}), tmp_path / "run").messages
    assert [message for message in messages if message.startswith("warning: only ")]


PAIRS = [line.split("\t") for line in PLAIN[TranslationData].splitlines()]
LABELS = [line.split("\t") for line in PLAIN[ClassifierData].splitlines()]
TAGS = [[line.split("\t") for line in block.splitlines()] for block in PLAIN[TaggerData].split("\n\n")]


def csv_of(rows: list[list[str]], delimiter: str = ",") -> str:
    return "".join(delimiter.join(f'"{cell}"' for cell in row) + "\r\n" for row in rows)


TABLES = [
    (TranslationData, "a.csv", csv_of(PAIRS), {}),
    (TranslationData, "a.csv", csv_of([["target", "id", "source"], *([b, "7", a] for a, b in PAIRS)], ";"), {}),
    (TranslationData, "a.tsv", "".join(f"{b}|{a}\n" for a, b in PAIRS), {"columns": "2,1", "delimiter": "pipe"}),
    (TranslationData, "a.tsv", "source\ttarget\n" + PLAIN[TranslationData], {}),
    (TranslationData, "a.tsv", "one\ttwo\n" + PLAIN[TranslationData], {"header": True}),
    (TranslationData, "a.tsv", "x\tone\ttwo\n" + "".join(f"0\t{a}\t{b}\n" for a, b in PAIRS), {"columns": "one,two"}),
    (TranslationData, "a.jsonl", "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in PAIRS), {}),
    (
        TranslationData,
        "a.json",
        "".join(json.dumps({"translation": {"x": a, "y": b}}) + "\n" for a, b in PAIRS),
        {"columns": "translation.x,translation.y"},
    ),
    (ClassifierData, "a.csv", csv_of([["text", "label"], *([b, a] for a, b in LABELS)]), {}),
    (ClassifierData, "a.tsv", "sentence\tlabel\n" + "".join(f"{b}\t{a}\n" for a, b in LABELS), {}),
    (ClassifierData, "a.jsonl", "".join(json.dumps({"text": b, "label": a}) + "\n" for a, b in LABELS), {}),
    (ClassifierData, "a.txt", "".join(f"{a} {b}\n" for a, b in LABELS), {"delimiter": "space"}),
    (TaggerData, "a.conll", "\n".join("".join(f"{a} {b}\n" for a, b in each) for each in TAGS), {}),
    (
        TaggerData,
        "a.conll",
        "-DOCSTART- -X- O\n\n" + "\n".join("".join(f"{a} NN {b}\n" for a, b in each) for each in TAGS),
        {},
    ),
    (
        TaggerData,
        "a.jsonl",
        "".join(json.dumps({"tokens": [a for a, _ in each], "tags": [b for _, b in each]}) + "\n" for each in TAGS),
        {},
    ),
]


@pytest.mark.parametrize(("job", "name", "content", "options"), TABLES)
def test_tables_of_many_kinds_give_what_tsv_gives(
    job: type, name: str, content: str, options: dict[str, Any], tmp_path: Path
) -> None:
    usual = read(job, tmp_path, "usual", PLAIN[job].encode())
    assert read(job, tmp_path, name, content.encode(), **options) == usual


def test_labels_of_trec_lead_their_lines(tmp_path: Path) -> None:
    content = "".join(f"{'ENTY:cremat' if n % 2 else 'DESC:manner'} {text} ?\n" for n, text in enumerate(SENTENCES))
    (tmp_path / "trec.txt").write_text(content, encoding="utf-8")
    job = prepared(ClassifierData(data=(str(tmp_path / "trec.txt"),)), tmp_path / "run")
    assert job.data.labels == ("DESC:manner", "ENTY:cremat")
    assert len(job.data.train.ids) + len(job.data.valid.ids) == 120
    assert any("read as columns between spaces: label is column 1" in message for message in job.messages)


@pytest.mark.parametrize(
    ("job", "name", "content", "options", "message"),
    [
        (
            TranslationData,
            "a.tsv",
            "no tab here\nnor here\n",
            {},
            "expected a source, a tab .* begins with 'no tab here'",
        ),
        (ClassifierData, "a.tsv", "just text\nmore text\n", {}, "expected a label, a tab .* begins with 'just text'"),
        (TaggerData, "a.txt", "one\ntwo\n", {}, "expected a word, .* begins with 'one'"),
        (
            ClassifierData,
            "a.csv",
            "title,stuff,kind\nx,y,z\n",
            {"header": True},
            "columns title, stuff, kind: say with",
        ),
        (ClassifierData, "a.csv", "label,text\na,x\n", {"columns": "label,txet"}, "no column 'txet'.* mean 'text'"),
        (TranslationData, "a.jsonl", '[{"source": 1}]\n', {}, r"expected a JSON object per line.*\[\{"),
        (TranslationData, "a.jsonl", '{"a": "x", "b": "y"}\n', {}, "columns a, b: say with --columns"),
        (TranslationData, "a.csv", 'a,b\nc,"d\ne,f\n', {}, "a.csv, line 2: this is not valid CSV"),
        (TranslationData, "a.tsv", "a\tb\n", {"columns": "1"}, "expected two columns or more"),
        (TranslationData, "a.tsv", "a\tb\n", {"delimiter": "tabs"}, "--delimiter 'tabs'"),
    ],
)
def test_what_was_expected_is_said_with_the_first_line(
    job: type, name: str, content: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=message):
        read(job, tmp_path, name, content.encode(), **options)


def test_lines_are_counted_right_in_tables(tmp_path: Path) -> None:
    rows = ['"source","target"', *(f'"{a}","{b}"' for a, b in PAIRS), '"two\nlines","zwei\nZeilen"', "alone", '" ","x"']
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    prepared(TranslationData(tsv=(str(tmp_path / "a.csv"),)), tmp_path / "run")
    report = [json.loads(line) for line in (tmp_path / "run" / "data-report.jsonl").read_text().splitlines()]
    found = {(entry["rule"], entry["line"]) for entry in report if "rule" in entry}
    # The header is line 1, the pairs are lines 2 to 121, and a row is known by its first line.
    assert found == {("control characters", 122), ("missing column", 125), ("blank", 126)}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("h.en-de.csv", "id,de,en\n" + "".join(f'{n},"{b}","{a}"\n' for n, (a, b) in enumerate(PAIRS))),
        ("h.en_de.tsv.gz", "id\tde\ten\n" + "".join(f"{n}\t{b}\t{a}\n" for n, (a, b) in enumerate(PAIRS))),
        (
            "h.en-de.jsonl",
            "".join(json.dumps({"id": n, "translation": {"de": b, "en": a}}) + "\n" for n, (a, b) in enumerate(PAIRS)),
        ),
    ],
)
def test_languages_in_a_file_name_tell_the_columns(name: str, content: str, tmp_path: Path) -> None:
    usual = read(TranslationData, tmp_path, "usual", PLAIN[TranslationData].encode())
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    assert read(TranslationData, tmp_path, name, packed) == usual


def test_languages_in_the_name_of_the_training_file_tell_the_columns_of_the_validation_file(tmp_path: Path) -> None:
    rows = "id,de,en\n" + "".join(f'{n},"{b}","{a}"\n' for n, (a, b) in enumerate(PAIRS))
    (tmp_path / "h.en-de.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "held-out.csv").write_text(rows, encoding="utf-8")
    data = TranslationData(tsv=(str(tmp_path / "h.en-de.csv"),), valid_tsv=(str(tmp_path / "held-out.csv"),))
    messages = "\n".join(prepared(data, tmp_path / "run").messages)
    assert "held-out.csv is read as columns between commas, with a header: source is column 3" in messages


@pytest.mark.parametrize("header", ["", "id\tenglish\tgerman\n"])
def test_a_column_of_numbers_is_no_source_of_a_table_with_others(header: str, tmp_path: Path) -> None:
    content = (header + "".join(f"{n}\t{a}\t{b}\n" for n, (a, b) in enumerate(PAIRS))).encode()
    with pytest.raises(
        UserError, match=r"a\.tsv: column 1 would be the source, but holds nothing but numbers.*--columns"
    ):
        read(TranslationData, tmp_path, "a.tsv", content)
    scored = "".join(f"{a}\t{n / 7:.3f}\t{b}\n" for n, (a, b) in enumerate(PAIRS)).encode()
    with pytest.raises(UserError, match="column 2 would be the target"):
        read(TranslationData, tmp_path, "scored.tsv", scored)
    # Those who say so may learn from numbers, and so may those whose file has nothing else.
    assert read(TranslationData, tmp_path, "a.tsv", content, columns="1,2")
    assert read(TranslationData, tmp_path, "two.tsv", "".join(f"{n}\t{a}\n" for n, (a, _) in enumerate(PAIRS)).encode())


def messages_of(job: type, folder: Path, name: str, content: str, **options: Any) -> str:
    (folder / name).write_text(content, encoding="utf-8")
    return "\n".join(
        prepared(job(**{FIELD.get(job, "data"): (str(folder / name),)}, **options), folder / f"{name}-run").messages
    )


def test_texts_in_the_place_of_labels_are_warned_of(tmp_path: Path) -> None:
    swapped = "".join(f"{text}\t{'ab'[n % 2]}\n" for n, text in enumerate(SENTENCES))
    warning = "warning: 120 labels for 120 texts: are the columns swapped? --columns 2,1 reads column 2 as the label"
    assert warning in messages_of(ClassifierData, tmp_path, "a.tsv", swapped)
    assert "swapped" not in messages_of(ClassifierData, tmp_path, "right.tsv", swapped, columns="2,1")
    assert "swapped" not in messages_of(ClassifierData, tmp_path, "usual.tsv", PLAIN[ClassifierData])
    pairs = "".join(f"{text}\tand {text}\t{'ab'[n % 2]}\n" for n, text in enumerate(SENTENCES))
    assert "--columns 3,1,2 reads column 3 as the label" in messages_of(ClassifierData, tmp_path, "pairs.tsv", pairs)
    assert "swapped" not in messages_of(ClassifierData, tmp_path, "few.tsv", "".join(swapped.splitlines(True)[:19]))


def test_words_in_the_place_of_tags_are_warned_of(tmp_path: Path) -> None:
    swapped = "\n".join(f"{'NV'[n % 2]}\tword{2 * n}\nV\tword{2 * n + 1}\n" for n in range(30))
    warning = "warning: 60 tags for 60 words: are the columns swapped? --columns 2,1 reads column 1 as the tag"
    assert warning in messages_of(TaggerData, tmp_path, "a.tsv", swapped)
    assert "swapped" not in messages_of(TaggerData, tmp_path, "right.tsv", swapped, columns="2,1")


def test_only_columns_that_a_file_has_are_named(tmp_path: Path) -> None:
    two = "".join(f'{"ab"[n % 2]},"{text}"\n' for n, text in enumerate(SENTENCES))
    said = messages_of(ClassifierData, tmp_path, "two.csv", two)
    assert "two.csv is read as columns between commas: label is column 1, text is column 2\n" in said
    three = two.replace('"\n', '",second\n')
    assert "text is column 2, second text is column 3" in messages_of(ClassifierData, tmp_path, "three.csv", three)
    # Of TSV only a third column is told, since it changes what is learned.
    for content, told in ((two, False), (three, True)):
        (tmp_path / "a.tsv").write_text(content.replace('"', "").replace(",", "\t"), encoding="utf-8")
        job = prepared(ClassifierData(data=(str(tmp_path / "a.tsv"),)), tmp_path / f"tsv-{told}")
        line = "tabs: label is column 1, text is column 2, second text is column 3"
        assert any(line in message for message in job.messages) == told
        assert [choice.value for choice in job.choices() if choice.name == "read as"] == ["pairs"] * told


@pytest.mark.parametrize("lines", [20, 21])
def test_a_field_of_many_lines_is_warned_of(lines: int, tmp_path: Path) -> None:
    field = 'a,"open here\n' + "b,more\n" * (lines - 2) + 'b,closed there"\n'
    said = messages_of(ClassifierData, tmp_path, "a.csv", "label,text\na,x\n" + field + csv_of(LABELS))
    warning = f"a.csv, line 3: a field between quotation marks spans {lines} lines, which are read as one text: a quota"
    report = (tmp_path / "a.csv-run" / "data-report.jsonl").read_text(encoding="utf-8")
    assert (warning in said) == (warning in report) == (lines > 20)
    (tmp_path / "two.csv").write_text(csv_of(PAIRS) + 2 * field, encoding="utf-8")
    warnings: list[str] = []
    read_pairs(str(tmp_path / "two.csv"), on_warning=warnings.append)
    warning = f"two.csv, line 121: a field between quotation marks spans {lines} lines (the first of 2 such fields), "
    assert (warning in "".join(warnings)) == (lines > 20)


def quoted(cell: str) -> str:
    """A cell as a writer of CSV puts it, with quotation marks inside."""
    return f'"""{cell},"" he said."'


@pytest.mark.parametrize("job", [TranslationData, ClassifierData])
@pytest.mark.parametrize("header", ["", "source\ttarget\n"])
def test_quotation_marks_of_csv_in_tsv_are_warned_of(job: type, header: str, tmp_path: Path) -> None:
    header = header if job is TranslationData else header.replace("source\ttarget", "label\ttext")
    rows = PAIRS if job is TranslationData else LABELS
    quotes = header + "".join(f"{a}\t{quoted(b)}\n" for a, b in rows)
    warning = f"a.tsv: 120 of {120 + bool(header)} rows have a field between quotation marks with doubled ones inside"
    assert warning in messages_of(job, tmp_path, "a.tsv", quotes)
    four = header + "".join(f"{a}\t{quoted(b) if n < 4 else b}\n" for n, (a, b) in enumerate(rows))
    assert "quotation marks" not in messages_of(job, tmp_path, "four.tsv", four)
    usual = "".join(f'{a}\t"{b}", "he" said ""\n' for a, b in rows)
    assert "quotation marks" not in messages_of(job, tmp_path, "usual.tsv", usual)
    # What the warning says to do; the commas are no delimiters.
    assert "quotation marks" not in messages_of(job, tmp_path, "a.csv", quotes, delimiter="tab")


def test_a_test_set_with_wrong_quotation_marks_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{quoted(b)}\n" for a, b in PAIRS), encoding="utf-8")
    said: list[str] = []
    read_pairs(str(tmp_path / "a.tsv"), on_warning=said.append)
    assert len(said) == 1 and said[0].startswith("warning: ") and "name it .csv and give --delimiter tab" in said[0]
    (tmp_path / "a.tsv").rename(tmp_path / "a.csv")
    pairs = read_pairs(str(tmp_path / "a.csv"), None, RowOptions(delimiter="tab"), said.append)
    assert (pairs.sources[7], pairs.targets[7]) == (PAIRS[7][0], f'"{PAIRS[7][1]}," he said.')
    assert [f"{tmp_path / 'a.csv'} is read as" in text for text in said] == [False, True]


def test_the_suggested_columns_are_a_label_and_texts(tmp_path: Path) -> None:
    numbered = "".join(f"{n},{text},{'ab'[n % 2]}\n" for n, text in enumerate(SENTENCES))
    refused = (
        r"ids\.csv: 120 labels for 120 texts, nearly all of them numbers that occur once, as ids do: nothing can be "
        r"learned from them; --columns 3,2 reads column 3 as the label$"
    )
    for header in ("", "number,opinion,polarity\n"):  # names that are not known make no header
        with pytest.raises(UserError, match=refused.replace("120 labels for 120", r"12\d labels for 12\d")):
            messages_of(ClassifierData, tmp_path, "ids.csv", header + numbered)
    assert "swapped" not in messages_of(ClassifierData, tmp_path, "right.csv", numbered, columns="3,2")
    named = "".join(f"x{n},en,{'ab'[n % 2]},{text}\n" for n, text in enumerate(SENTENCES))
    said = messages_of(ClassifierData, tmp_path, "named.csv", named)
    assert "are the columns swapped? --columns 3,4 reads column 3 as the label" in said
    distinct = "".join(f"word{n},{text}\n" for n, text in enumerate(SENTENCES))  # nothing here is a label
    assert "--columns says which column is the label" in messages_of(ClassifierData, tmp_path, "no.csv", distinct)
    words = "\n".join(f"{2 * n}\tN\n{2 * n + 1}\tV\n" for n in range(30))
    with pytest.raises(UserError, match="60 tags for 60 words, nearly all of them numbers"):
        messages_of(TaggerData, tmp_path, "words.tsv", words, columns="2,1")


def test_suggested_columns_leave_out_those_of_numbers(tmp_path: Path) -> None:
    objects = [{"id": n, "translation": {"en": a, "de": b}} for n, (a, b) in enumerate(PAIRS)]
    lines = "".join(json.dumps(each) + "\n" for each in objects)
    with pytest.raises(UserError, match=r"source and target, as in --columns translation\.en,translation\.de$"):
        messages_of(TranslationData, tmp_path, "a.jsonl", lines)
    rated = [{"id": n, "stars": str(n % 5), "opinion": text} for n, text in enumerate(SENTENCES)]
    with pytest.raises(UserError, match=r"label and text, as in --columns stars,opinion$"):
        messages_of(ClassifierData, tmp_path, "b.jsonl", "".join(json.dumps(each) + "\n" for each in rated))
    rows = "number,english,german\n" + "".join(f"{n},{a},{b}\n" for n, (a, b) in enumerate(PAIRS))
    with pytest.raises(UserError, match=r"source and target, as in --columns english,german$"):
        messages_of(TranslationData, tmp_path, "a.csv", rows, header=True)
    scored = "".join(f"{a}\t{n / 7:.3f}\t{b}\n" for n, (a, b) in enumerate(PAIRS))
    with pytest.raises(UserError, match=r"column 2 would be the target.*, as in --columns 1,3$"):
        messages_of(TranslationData, tmp_path, "scored.tsv", scored)


def test_a_header_over_numbers_is_suggested_by_its_names(tmp_path: Path) -> None:
    rows = "".join(f'{n},"{a}","{b}"\n' for n, (a, b) in enumerate(PAIRS))
    for header, hint in (("id,en,ru", "--columns en,ru"), (",en,ru", "--columns en,ru"), ("id,a,a", "2,3 --header")):
        with pytest.raises(UserError, match=rf"holds nothing but numbers.* as in (--columns )?{hint}$"):
            read(TranslationData, tmp_path, "a.csv", f"{header}\n{rows}".encode())
    with pytest.raises(UserError, match=r"as in --columns 2,3$"):
        read(TranslationData, tmp_path, "a.csv", rows.encode())


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_header_that_is_read_as_a_pair_is_warned_of(name: str, tmp_path: Path) -> None:
    separator = "," if name.endswith(".csv") else "\t"
    rows = [
        separator.join(cells) + "\n"
        for cells in (("id", "en", "ru"), *((str(n), *pair) for n, pair in enumerate(PAIRS)))
    ]
    by_number = messages_of(TranslationData, tmp_path, name, "".join(rows), columns="2,3")
    assert f"warning: {tmp_path / name}: its first row, 1 'id', 2 'en', 3 'ru', looks like a header" in by_number
    assert f"{len(rows)} pairs read" in by_number  # as ever: unfinished runs were begun with it
    for options in ({"columns": "en,ru"}, {"columns": "2,3", "header": True}, {"columns": "2,3", "header": False}):
        (tmp_path / "other").mkdir(exist_ok=True)
        assert "looks like a header" not in messages_of(TranslationData, tmp_path, name, "".join(rows), **options)
    assert "looks like" not in messages_of(TranslationData, tmp_path, f"b{name}", "".join(rows[1:]), columns="2,3")
    told: list[str] = []
    read_pairs(str(tmp_path / name), layout=RowOptions(columns="2,3"), on_warning=told.append)
    assert any("looks like a header" in text for text in told)


def test_a_header_that_is_read_as_an_example_is_warned_of(tmp_path: Path) -> None:
    rows = "stars,opinion\n" + "".join(f"{n % 5},{text}\n" for n, text in enumerate(SENTENCES))
    assert "looks like a header" in messages_of(ClassifierData, tmp_path, "a.csv", rows, columns="1,2")
