import gzip
import io
import lzma
import os
import threading
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.text import text_files
from heedful.text.text_files import (
    MAX_LINE_BYTES,
    can_be_read_once_only,
    expand_files,
    language_from_name,
    language_pair_from_name,
    read_line_blocks,
    read_raw_blocks,
    spool,
)


def read_lines(path: Path) -> list[bytes]:
    return [line for lines in read_line_blocks(path) for line in lines]


PACKERS = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress}


def lines_by_the_rule(content: bytes) -> list[bytes]:
    """The rule for line ends, spelt out byte by byte."""
    lines, line = [], b""
    for place in range(len(content)):
        byte = content[place : place + 1]
        if byte == b"\n":
            lines.append(line[:-1] if line[-1:] == b"\r" else line)
            line = b""
        else:
            line += byte
    return [*lines, line] if line else lines


@pytest.mark.parametrize("packing", PACKERS)
@given(
    content=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n", b"\xe2\x80\xa8", b"\x0b", b"\xff"])).map(
        b"".join
    )
)
@settings(max_examples=60)
@example(content=b"")
@example(content=b"\n")
@example(content=b"\n\n")
@example(content=b"a\r\r\nb\r")
def test_only_a_newline_ends_a_line(tmp_path_factory: pytest.TempPathFactory, packing: str, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / f"lines.{packing}"
    path.write_bytes(PACKERS[packing](content))
    assert read_lines(path) == lines_by_the_rule(content)


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7])
def test_lines_do_not_depend_on_where_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    content = b"one\r\ntwo\n\n\r\nthr\ree\r\r\n\nlast\r"
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", block_bytes)
    (tmp_path / "a").write_bytes(content)
    assert read_lines(tmp_path / "a") == lines_by_the_rule(content)


def test_a_byte_order_mark_is_taken_off_at_the_start_only(tmp_path: Path) -> None:
    mark = "\ufeff".encode()
    (tmp_path / "a").write_bytes(mark + b"one\n" + mark + b"two\n")
    assert read_lines(tmp_path / "a") == [b"one", mark + b"two"]


def test_a_huge_line_is_cut_and_the_line_after_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 10_007)
    fits = b"f" * MAX_LINE_BYTES
    (tmp_path / "a").write_bytes(b"x" * 1_000_003 + b"\nafter\n" + fits + b"\r\n" + fits + b"g\nend")
    lines = read_lines(tmp_path / "a")
    assert [len(line) for line in lines] == [MAX_LINE_BYTES + 1, 5, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 3]
    assert lines[1] == b"after"
    assert lines[4] == b"end"


def test_a_cut_line_is_not_taken_for_one_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Cut behind its carriage return, with the newline first in the next block, it would seem to end there.
    line = b"f" * MAX_LINE_BYTES + b"\rmore"
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", len(line))
    (tmp_path / "a").write_bytes(line + b"\nafter\n")
    assert [len(line) for line in read_lines(tmp_path / "a")] == [MAX_LINE_BYTES + 1, 5]


def test_blocks_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789\n" * 100_003)
    blocks = list(read_line_blocks(tmp_path / "a"))
    assert sum(map(len, blocks)) == 100_003
    assert max(sum(map(len, block)) for block in blocks) < 600_000


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_a_truncated_file_is_named(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"short.{packing}"
    path.write_bytes(PACKERS[packing](os.urandom(5003))[:-11])
    with pytest.raises(UserError, match=rf"short\.{packing} is damaged or cut short"):
        read_lines(path)


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_packed_files_may_be_joined_and_damage_to_any_of_them_is_found(tmp_path: Path, packing: str) -> None:
    path, pack = tmp_path / f"joined.{packing}", PACKERS[packing]
    texts = [b"one\n" * 1009, os.urandom(5003).hex().encode() + b"\n", b"three\n"]
    whole = b"".join(map(pack, texts))
    for padding in (b"", bytes(8)):
        path.write_bytes(whole + padding)
        assert b"\n".join(read_lines(path)) + b"\n" == b"".join(texts)
    second = len(pack(texts[0]))
    flipped = [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in (second + 1, second + 2003)]
    for damaged in (*flipped, whole[: second + 11], whole + b"garbage"):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match="is damaged or cut short"):
            read_lines(path)


@pytest.mark.parametrize("packing", ["gz", "xz"])
def test_a_file_that_is_not_what_its_name_says_is_named(tmp_path: Path, packing: str) -> None:
    path = tmp_path / f"wrong.{packing}"
    path.write_bytes(b"plain text\n")
    with pytest.raises(UserError, match=rf"wrong\.{packing} is named \.{packing} but"):
        read_lines(path)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    for read in (read_lines, read_raw_blocks):
        with pytest.raises(UserError, match="gone cannot be read"):
            list(read(tmp_path / "gone"))


def test_patterns_are_expanded_in_the_order_given(tmp_path: Path) -> None:
    for name in ("b.en", "a.en", "c.de", "sub/d.en"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "folder.en").mkdir()
    names = expand_files([str(tmp_path / "c.de"), str(tmp_path / "*.en"), str(tmp_path / "**/d.en"), "-"])
    assert [Path(name).name for name in names] == ["c.de", "a.en", "b.en", "d.en", "-"]


def test_a_name_with_pattern_characters_that_exists_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].en").touch()
    assert expand_files([str(tmp_path / "a[1].en")]) == [str(tmp_path / "a[1].en")]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.en", "there is no file .*missing.en"),
        ("*.xx", r"no file matches .*\*\.xx"),
        ("", "is a folder"),
    ],
)
def test_what_cannot_be_a_file_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        expand_files([str(tmp_path / name)])


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("train.en.gz", "en"),
        ("data/train.de", "de"),
        ("Europarl.de-en.en", "en"),
        ("corpus.pt-BR.txt", "pt-BR"),
        ("flores.eng_Latn", "eng_Latn"),
        ("news.zh-Hans-CN.xz", "zh-Hans-CN"),
        ("tatoeba.deu.txt.gz", "deu"),
        ("en.txt", "en"),
        ("train.txt", None),
        ("train.src", None),
        ("train.qq", None),
        ("big.gz", None),
        ("train", None),
        ("train.en-de.tsv", None),
    ],
)
def test_language_from_name(name: str, language: str | None) -> None:
    assert language_from_name(name) == language


@pytest.mark.parametrize(
    ("name", "languages"),
    [
        ("train.en-de.tsv", ("en", "de")),
        ("train.deu_eng.tsv.gz", ("deu", "eng")),
        ("train.tsv", None),
        ("train.en.tsv", None),
        ("train.pt-BR.tsv", None),
    ],
)
def test_language_pair_from_name(name: str, languages: tuple[str, str] | None) -> None:
    assert language_pair_from_name(name) == languages


def test_standard_input_is_spooled_byte_for_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"a\tb\r\n\xff\x00"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert can_be_read_once_only("-")
    spool("-", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_spooled(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert can_be_read_once_only(str(pipe))
    writer = threading.Thread(target=pipe.write_bytes, args=(b"one\ntwo\n",))
    writer.start()
    spool(str(pipe), tmp_path / "copy")
    writer.join()
    assert (tmp_path / "copy").read_bytes() == b"one\ntwo\n"
    assert not can_be_read_once_only(str(tmp_path / "copy"))


ENDLESS = r", line 3 is longer than 1,000,000 bytes: split it, or give a file of text"


def test_a_line_that_seems_never_to_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LONGEST_LINE_BYTES", 1_000_000)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n" + b"x" * 2_000_000 + b"\n"))
    with pytest.raises(UserError, match=rf"a\.gz{ENDLESS}"):
        read_lines(path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.decompress(path.read_bytes()))))
    with pytest.raises(UserError, match=rf"standard input{ENDLESS}"):
        spool("-", tmp_path / "copy")
    long = b"x" * 900_000 + b"\n"
    path.write_bytes(gzip.compress(3 * long))
    assert len(read_lines(path)) == 3


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no device of zeros")
@pytest.mark.parametrize("whole", [False, True])
def test_zeros_without_an_end_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    monkeypatch.setattr(text_files, "LONGEST_LINE_BYTES", 1_000_000)
    what = "has 1,000,000 NUL bytes in a row" if whole else "is longer than 1,000,000 bytes"
    with pytest.raises(UserError, match=f"/dev/zero, line 1 {what}: split it, or give a file of text"):
        spool("/dev/zero", tmp_path / "copy", whole)


def test_a_whole_text_may_be_one_long_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LONGEST_LINE_BYTES", 1_000_000)
    content = b"word " * 1_000_000
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    spool("-", tmp_path / "copy", whole=True)
    assert (tmp_path / "copy").read_bytes() == content
