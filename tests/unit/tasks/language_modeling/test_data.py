import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.tasks.language_modeling.data import PreparedText, TextOptions, prepare_text
from heedful.text.documents import Documents
from heedful.text.text_files import MAX_LINE_BYTES
from heedful.text.tokenizer import Tokenizer

END = 2


def prepare(folder: Path, files: dict[str, bytes], unit: str = "file", valid: bytes | None = None, **options):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    train = Documents.from_files(tuple(str(folder / name) for name in files), unit, folder / "spool")
    held_out = None
    if valid is not None:
        (folder / "valid.txt").write_bytes(valid)
        held_out = Documents.from_files((str(folder / "valid.txt"),), unit, folder / "spool")
    return prepare_text(train, held_out, folder / "run", TextOptions(vocabulary_size=300, **options))


def documents(found: PreparedText, ids: np.ndarray) -> list[str]:
    """The texts between the end tokens."""
    assert ids[0] == ids[-1] == END
    parts = np.split(ids[1:], np.flatnonzero(ids[1:] == END) + 1)
    return [found.tokenizer.decode(part.tolist()) for part in parts if len(part)]


def test_every_file_is_a_document(tmp_path: Path) -> None:
    files = {"a.txt": b"One dog.\nTwo dogs.\n", "b.txt": "Drei Bäume.\r\n".encode(), "c.txt": b"  \n"}
    found = prepare(tmp_path, files, valid=b"Four cats.\n")
    assert documents(found, found.train) == ["One dog.\nTwo dogs.\n", "Drei Bäume.\n"]
    assert documents(found, found.valid) == ["Four cats.\n"]
    assert found.facts["valid_bytes"] == 11 and [message[:13] for message in found.messages] == ["warning: only"]


def test_every_line_is_a_document(tmp_path: Path) -> None:
    found = prepare(tmp_path, {"a.txt": b"One dog.\n\nTwo dogs.\n"}, "line", valid=b"x\n")
    assert documents(found, found.train) == ["One dog.", "Two dogs."]


def test_the_end_of_a_single_text_is_held_out_at_a_line(tmp_path: Path) -> None:
    lines = [f"line number {number}\n" for number in range(100)]
    found = prepare(tmp_path, {"a.txt": "".join(lines).encode()})
    (train,), (valid,) = documents(found, found.train), documents(found, found.valid)
    assert train + valid == "".join(lines)
    assert valid.startswith("line number") and 0.03 < len(valid) / len(train) < 0.08


def test_of_many_documents_some_are_held_out_and_equal_ones_together(tmp_path: Path) -> None:
    lines = [f"document {number % 400}" for number in range(800)]
    found = prepare(tmp_path, {"a.txt": "\n".join(lines).encode()}, "line")
    train, valid = documents(found, found.train), documents(found, found.valid)
    assert len(train) + len(valid) == 800 and 8 < len(valid) < 100
    assert not set(train) & set(valid)


def test_bad_bytes_and_control_characters_are_listed_with_file_and_line(tmp_path: Path) -> None:
    few = b"good\nb\xffd\nnull\x00 here\ngood\n" * 2
    content = few + b"good\n" * 200  # more than a hundredth of such lines would be refused
    found = prepare(tmp_path, {"a.txt": content}, valid=b"x\n")
    assert documents(found, found.train)[0] == "good\nb\ufffdd\nnull  here\ngood\n" * 2 + "good\n" * 200
    rows = [json.loads(line) for line in (tmp_path / "run" / "data-report.jsonl").read_text().splitlines()]
    assert [(row["rule"], row["line"]) for row in rows] == [
        ("invalid UTF-8", 2),
        ("control characters", 3),
        ("invalid UTF-8", 6),
        ("control characters", 7),
    ]
    assert "invalid UTF-8 2, control characters 2" in found.messages[0]


@pytest.mark.parametrize("before", range(4))
def test_an_over_long_line_is_cut_before_a_character(before: int, tmp_path: Path) -> None:
    line = "x" * before + "🐕" * (MAX_LINE_BYTES // 4)
    (tmp_path / "a.txt").write_text(f"{line}a\n", encoding="utf-8")
    hits = []
    found = Documents.from_files((str(tmp_path / "a.txt"),), "line", tmp_path / "spooled").parts(
        lambda rule, action, file, line: hits.append((rule, line))
    )
    assert [part.text for part in found] == [line[: before + (MAX_LINE_BYTES - before) // 4]]
    assert hits == [("over-long", 1)]


def test_one_long_line_loses_nothing(tmp_path: Path) -> None:
    content = ("word " * 400_000).encode()
    found = prepare(tmp_path, {"a.txt": content}, valid=b"x\n")
    assert documents(found, found.train)[0] == content.decode()


def test_characters_are_the_tokens_when_asked(tmp_path: Path) -> None:
    found = prepare(tmp_path, {"a.txt": b"abcab\n"}, valid=b"abxc\n", tokenizer="characters")
    assert found.tokenizer.vocabulary_size == 4 + 4
    assert documents(found, found.train) == ["abcab\n"]
    assert found.valid.tolist()[3] == found.tokenizer.special_tokens.unknown
    assert found.facts["unknown"] == 1


def test_the_same_content_is_prepared_once_and_other_content_anew(tmp_path: Path) -> None:
    first = prepare(tmp_path, {"a.txt": b"One dog.\n"}, valid=b"x\n")
    marker = tmp_path / "run" / "prepared" / "marker"
    marker.touch()
    assert prepare(tmp_path, {"a.txt": b"One dog.\n"}, valid=b"x\n").key == first.key
    assert marker.exists()
    assert prepare(tmp_path, {"a.txt": b"One cat.\n"}, valid=b"x\n").key != first.key
    assert not marker.exists()


def test_empty_files_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="empty"):
        prepare(tmp_path, {"a.txt": b"\n \n"})


@given(st.text())
def test_whole_texts_come_back_from_their_tokens(text: str) -> None:
    import unicodedata

    tokenizer = _TOKENIZER
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


_TOKENIZER = Tokenizer.train(["the red dog", "déjà vu\n\n"], 300, whole_texts=True)


@pytest.mark.parametrize("letters", ["abcdefgh", "一只狗在公园里奔跑天气很好", "äöüß"])
def test_text_without_any_break_is_read_in_bounded_parts(letters: str, tmp_path: Path) -> None:
    text = letters * ((3 << 20) // len(letters.encode()))
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    parts = list(Documents.from_files((str(tmp_path / "a.txt"),), "file", tmp_path / "spooled").parts(None))
    assert "".join(part.text for part in parts) == text
    assert max(len(part.text.encode()) for part in parts) <= 1 << 20


def test_subwords_of_text_without_any_break_are_learned_in_linear_time() -> None:
    random = np.random.default_rng(1)
    seconds = []
    for size in (1 << 14, 1 << 18):
        text = "".join(random.choice(list("abcdefgh"), size))
        started = time.process_time()
        Tokenizer.train([text], 300)
        seconds.append(time.process_time() - started)
    # Sixteen times the text: with the square of its length it would take 256 times as long.
    assert seconds[1] < 64 * seconds[0] + 1
