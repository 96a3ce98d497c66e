import gzip
import json
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.tasks.labelling.data import NO_LABEL, LabelOptions, PreparedLabels, prepare_labels
from heedful.tasks.labelling.files import LabelledFiles

WORDS = ["red", "green", "blue", "dog", "cat", "house", "sea"]
LINES = [
    f"{'even' if number % 2 == 0 else 'odd'}\t{WORDS[number % 7]} {WORDS[number % 5]} {number}" for number in range(211)
]


def prepare(folder: Path, content: str, valid: str | None = None, unit: str = "text", **options) -> PreparedLabels:
    files = []
    for name, text in (("train", content), ("valid", valid)):
        if text is not None:
            (folder / f"{name}.tsv").write_bytes(text.encode("utf-8", "surrogateescape"))
            files.append(LabelledFiles.from_patterns((str(folder / f"{name}.tsv"),), unit, folder / "spool"))
    (folder / "run").mkdir(exist_ok=True)
    settings = LabelOptions(**{"max_length": 64, **options})
    return prepare_labels(files[0], files[1] if valid else None, folder / "run", settings)


def texts(data: PreparedLabels, part: str) -> list[str]:
    ids = getattr(data, part).ids
    return [data.tokenizer.decode(ids[index].tolist()) for index in range(len(ids))]


def report(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "run" / "data-report.jsonl").read_text().splitlines()]


def test_texts_and_labels_come_through(tmp_path: Path) -> None:
    data = prepare(tmp_path, "\n".join(LINES))
    assert data.labels == ("even", "odd")
    assert len(data.train.ids) + len(data.valid.ids) == 211
    found = {
        f"{data.labels[examples.labels[index][0]]}\t{text}"
        for part, examples in (("train", data.train), ("valid", data.valid))
        for index, text in enumerate(texts(data, part))
    }
    assert found == set(LINES)
    special = data.tokenizer.special_tokens
    assert data.train.ids[0][0] == special.start and data.train.ids[0][-1] == special.end
    assert special.mask is not None and not data.train.has_pairs and not data.train.has_only_pairs


def test_a_text_that_occurs_twice_is_never_on_both_sides(tmp_path: Path) -> None:
    data = prepare(tmp_path, "\n".join(LINES + [line.replace("even", "odd") for line in LINES]))
    assert 0.03 < len(data.valid.ids) / 422 < 0.07
    assert not set(texts(data, "train")) & set(texts(data, "valid"))


def test_a_label_that_only_held_out_texts_bear_is_told_of(tmp_path: Path) -> None:
    data = prepare(tmp_path, "good\tI like it\nbad\tI hate it\n" * 61)
    (left,) = {data.labels[int(data.train.labels[index][0])] for index in range(len(data.train.ids))}
    (other,) = {"good", "bad"} - {left}
    assert f"labels without any example to train on: {other}" in data.messages


def test_pairs_know_their_first_text(tmp_path: Path) -> None:
    data = prepare(tmp_path, "\n".join(f"{line}\tsea {number}" for number, line in enumerate(LINES)))
    assert data.train.has_pairs and data.train.has_only_pairs
    ids, first = data.train.ids[0].tolist(), int(data.train.first_lengths[0])
    end = data.tokenizer.special_tokens.end
    assert ids[first - 1] == ids[-1] == end and ids.count(end) == 2
    assert data.tokenizer.decode(ids[first:]).startswith("sea")


def test_bad_lines_are_listed(tmp_path: Path) -> None:
    bad = ["no tab here", "even\t ", "\tno label", "odd\tbytes \udcff in it", f"odd\t{'long ' * 90}"]
    data = prepare(tmp_path, "\n".join([*LINES, *bad]))
    found = {entry["line"]: (entry["rule"], entry["action"]) for entry in report(tmp_path)}
    assert found == {
        212: ("missing column", "left out"),
        213: ("blank", "left out"),
        214: ("blank", "left out"),
        215: ("invalid UTF-8", "changed"),
        216: ("shortened", "changed"),
    }
    assert all(entry["file"] == str(tmp_path / "train.tsv") for entry in report(tmp_path))
    assert "blank 2" in data.messages[0]
    assert any("bytes \ufffd in it" in text for part in ("train", "valid") for text in texts(data, part))
    assert int(data.train.ids.lengths.max()) <= 64


def test_an_unknown_label_in_held_out_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"valid.tsv, line 2: the label 'evn' does not .* did you mean 'even'"):
        prepare(tmp_path, "\n".join(LINES), "odd\tred\nevn\tblue\n")


def test_an_unknown_tag_in_held_out_data_is_named_by_its_own_line(tmp_path: Path) -> None:
    content = "\n\n".join(f"{word}\tA\nsea\tB" for word in WORDS)
    with pytest.raises(UserError, match=r"valid.tsv, line 5: the label 'C' does not"):
        prepare(tmp_path, content, "red\tA\n\nsea\tB\ndog\tA\ncat\tC\n", unit="word")


def test_held_out_files_leave_all_of_the_others_for_training(tmp_path: Path) -> None:
    data = prepare(tmp_path, "\n".join(LINES), "odd\tred\neven\tblue\n")
    assert len(data.train.ids) == 211
    assert texts(data, "valid") == ["red", "blue"]
    assert [row[0] for row in (data.valid.labels[0], data.valid.labels[1])] == [1, 0]


def test_the_same_content_is_prepared_once(tmp_path: Path) -> None:
    first = prepare(tmp_path, "\n".join(LINES))
    changed = (tmp_path / "run" / "prepared" / "meta.json").stat().st_mtime_ns
    again = prepare(tmp_path, "\n".join(LINES))
    assert first.key == again.key
    assert (tmp_path / "run" / "prepared" / "meta.json").stat().st_mtime_ns == changed
    assert prepare(tmp_path, "\n".join(LINES), max_length=32).key != first.key


@pytest.mark.parametrize(
    ("content", "message"), [("", "no example is left"), ("a\tred\na\tblue\n", "have the label 'a'")]
)
def test_too_little_is_refused(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        prepare(tmp_path, content)


SENTENCE = [("the", "DET"), ("dog", "NOUN"), ("sees", "VERB"), ("a", "DET"), ("cat", "NOUN")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "\n".join(f"{WORDS[n % 7]}\t{'ABC'[n % 3]}" for n in range(53)),
            "no blank line .* all 53 words are one sentence",
        ),
        (
            "\n".join(f"{tag}\t{word}" for word, tag in 11 * SENTENCE),
            "5 tags for 3 different words: .* swapped.* 2,1 rea",
        ),
        (
            11 * ("\n".join(f"{tag} {word}" for word, tag in SENTENCE) + "\n\n"),
            "single distinct sentence, .* 5 tags for 3 different words: are the columns swapped.* 2,1 reads",
        ),
        (11 * "red\tA\ndog\tB\n\n", "single distinct sentence, so none can .*: give more sentences, or valid"),
    ],
    ids=["no blank lines", "swapped without blank lines", "swapped", "the same sentence"],
)
def test_what_is_wrong_with_a_single_sentence(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        prepare(tmp_path, content, unit="word")


def test_a_single_text_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"single distinct text, so none can .*: give more texts, or validation files"):
        prepare(tmp_path, "a\tred\nb\tred\n")


@pytest.mark.parametrize(("words", "warned"), [(199, False), (211, True)])
def test_missing_blank_lines_are_warned_of_where_files_are_held_out(words: int, warned: bool, tmp_path: Path) -> None:
    content = "\n".join(f"{WORDS[n % 7]}\t{'ABC'[n % 3]}" for n in range(words))
    data = prepare(tmp_path, content, "red\tA\n", unit="word")
    assert any("no blank line was found between sentences" in message for message in data.messages) == warned


def test_words_with_a_space_inside_are_warned_of_once(tmp_path: Path) -> None:
    content = "\n\n".join(f"{word}\tA\nNew York\tB\nla\u00a0mer\tB" for word in WORDS)
    data = prepare(tmp_path, content, unit="word")
    (warning,) = (message for message in data.messages if "space inside" in message)
    assert f"14 words have a space inside, the first 'New York' in {tmp_path / 'train.tsv'}, line 2: " in warning
    data = prepare(tmp_path, content.replace("New York", "York").replace("\u00a0", ""), unit="word")
    assert not any("space inside" in message for message in data.messages)


def test_tagged_words(tmp_path: Path) -> None:
    sentences = [
        [(WORDS[(number + place) % 7], "ABC"[place % 3]) for place in range(1 + number % 5)] for number in range(97)
    ]
    content = "\n\n".join("\n".join(f"{word}\t{tag}" for word, tag in sentence) for sentence in sentences)
    data = prepare(tmp_path, content, unit="word")
    assert data.labels == ("A", "B", "C")
    found = []
    for part, examples in (("train", data.train), ("valid", data.valid)):
        for index, text in enumerate(texts(data, part)):
            labels = examples.labels[index]
            assert len(labels) == len(examples.ids[index]) and labels[0] == labels[-1] == NO_LABEL
            found.append(list(zip(text.split(), [data.labels[label] for label in labels if label >= 0], strict=True)))
    assert sorted(found) == sorted(sentences)


def test_long_sentences_are_read_in_pieces(tmp_path: Path) -> None:
    long = "\n".join(f"house\t{'AB'[number % 2]}" for number in range(41))
    short = "\n\n".join(f"{word}\tA\nsea\tB" for word in WORDS)
    data = prepare(tmp_path, f"{long}\n\n{short}\n", f"{long}\n", unit="word", max_length=16)
    assert [entry["line"] for entry in report(tmp_path) if entry.get("rule") == "shortened"] == [1, 1]
    rows = [data.valid.labels[index] for index in range(len(data.valid.ids))]
    assert len(rows) > 1
    assert [int(label) for row in rows for label in row if label >= 0] == [number % 2 for number in range(41)]


def test_packed_files(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(LINES))
    files = LabelledFiles.from_patterns((str(tmp_path / "*.gz"),), "text", tmp_path)
    assert [example.line for example in files.examples()] == list(range(1, 212))
