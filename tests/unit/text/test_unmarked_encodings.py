"""Text of several bytes per character without a byte order mark, and encodings that are none for files."""

import encodings
import pkgutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.text.encodings import as_utf8, check_encoding

LATIN, CHINESE = "red dog\ngreen house\n" * 20, "红狗\n绿色的房子\n" * 20
WIDE = ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]


def known(name: str) -> bool:
    try:
        check_encoding(name)
    except UserError:
        return False
    return True


ENCODINGS = [each.name for each in pkgutil.iter_modules(encodings.__path__) if known(each.name)]


@pytest.mark.parametrize("encoding", WIDE)
@pytest.mark.parametrize("text", [LATIN, CHINESE, "é\n", "a\n"], ids=["latin", "chinese", "short", "shortest"])
def test_the_error_names_the_encoding(text: str, encoding: str) -> None:
    with pytest.raises(UserError, match=rf"^f looks like UTF-\d\d without .*: give --encoding {encoding}$"):
        list(as_utf8([text.encode(encoding)], "f"))
    assert b"".join(as_utf8([text.encode(encoding)], "f", encoding)) == text.encode()


@given(st.text(min_size=1), st.sampled_from([*WIDE, "utf-8"]), st.integers(1, 70))
def test_what_is_given_by_name_is_read(text: str, encoding: str, size: int) -> None:
    raw = f"a{text}".encode(encoding)
    blocks = [raw[start : start + size] for start in range(0, len(raw), size)]
    assert b"".join(as_utf8(blocks, "f", encoding)) == f"a{text}".encode()


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_utf8_is_not_taken_for_anything_else(text: str) -> None:
    raw = f"red {text} dog\n".encode()
    assert b"".join(as_utf8([raw], "f")) == raw


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_mark_may_come_byte_by_byte(encoding: str) -> None:
    raw = "a€\n".encode(encoding)
    assert b"".join(as_utf8((raw[place : place + 1] for place in range(len(raw))), "f")) == "a€\n".encode()


def test_a_line_is_not_kept_waiting() -> None:
    """Who sends a line and waits for its answer must not have to send more."""

    def blocks():
        yield b"a\n"
        raise AssertionError("more was read")

    assert next(as_utf8(blocks(), "f")) == b"a\n"


@pytest.mark.parametrize("raw", [bytes(range(256)) * 3, b"red dog\n", "rød\n".encode("utf-16-le"), b"\0", b""])
def test_any_encoding_reads_any_bytes_or_says_why_not(raw: bytes) -> None:
    assert len(ENCODINGS) > 80
    for encoding in ENCODINGS:
        for blocks in ([raw], [raw[place : place + 1] for place in range(len(raw))]):
            with suppress(UserError):  # and nothing else
                assert isinstance(b"".join(as_utf8(blocks, "f", encoding)), bytes)


@pytest.mark.parametrize(
    "encoding", ["idna", "punycode", "unicode_escape", "hex", "rot13", "undefined", "no-such", "a\0b", ""]
)
def test_what_is_not_an_encoding_of_files_is_refused(encoding: str) -> None:
    with pytest.raises(UserError, match="is not the name of an encoding"):
        check_encoding(encoding)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_what_the_error_says_to_type_works(run, small_folders, tmp_path: Path, encoding: str) -> None:
    for name, text in (("a", "red dog\ndog\n"), ("t", "red\tdog\ndog\tred\n")):
        (tmp_path / name).write_bytes(text.encode(encoding))
        (tmp_path / f"{name}8").write_text(text)
    model = small_folders["translation"]
    commands = [
        ["translate", model, "--input", "a"],
        ["score", model, "--input", "t"],
        ["score", model, "--source", "a", "--target", "a"],
        ["evaluate", model, "--tsv", "t"],
    ]
    for command in commands:
        files = [tmp_path / each if each in ("a", "t") else each for each in command]
        told = run(*files, code=2).stderr.decode()
        assert told.endswith(f"give --encoding {encoding}\n") and told.count("\n") == 1
        plain = [tmp_path / f"{each}8" if each in ("a", "t") else each for each in command]
        found, expected = (run(*each).stdout for each in ([*files, "--encoding", encoding], plain))
        assert found == expected or command[0] == "evaluate"  # which measures the time, too
