"""`--prefix-file`: each line's translation begins with a line of its own."""

from pathlib import Path

import pytest

import heedful
from heedful.errors import UserError

LINES = ["red dog", "dog", "", "red", "dog", "red dog"]
PREFIXES = ["red", "", "dog", "dog red ", "dog", "red"]
SHORT = ["--max-length", "5"]


@pytest.mark.parametrize("engine", ["core", "torch"])
def test_each_line_begins_with_its_own(run, small_folders, tmp_path: Path, engine: str) -> None:
    model = small_folders["translation"]
    (tmp_path / "prefixes").write_text("\n".join(PREFIXES) + "\n")
    given = "\n".join(LINES).encode()
    arguments = ["--prefix-file", tmp_path / "prefixes", "--scores", "--engine", engine, *SHORT]
    found = run("translate", model, *arguments, stdin=given).stdout.decode().split("\n")
    for line, prefix, answer in zip(LINES, PREFIXES, found, strict=False):
        one = ["--prefix", prefix, "--scores", "--engine", engine, *SHORT]
        assert run("translate", model, *one, stdin=f"{line}\n".encode()).stdout.decode() == answer + "\n"
        assert answer.startswith(prefix.strip()) or not line
    # The same line again, with another prefix, is another answer.
    assert found[1] != found[4] and found[0] == found[5] and len(found) == len(LINES) + 1


@pytest.mark.parametrize("count", [0, 1, 5, 7, 2500])
def test_the_counts_must_be_the_same(run, small_folders, tmp_path: Path, count: int) -> None:
    (tmp_path / "prefixes").write_text("red\n" * count)
    arguments = ["--prefix-file", tmp_path / "prefixes", "--output", tmp_path / "out", *SHORT]
    result = run("translate", small_folders["translation"], *arguments, stdin="\n".join(LINES).encode(), code=2)
    expected = f"lines to translate: 6, but lines in --prefix-file: {count:,}; each line needs its counterpart"
    assert expected in result.stderr.decode() and result.stderr.count(b"\n") == 1
    assert not (tmp_path / "out").exists()


def test_mistakes(run, small_folders, tmp_path: Path) -> None:
    (tmp_path / "prefixes").write_text("red\n")
    (tmp_path / "long").write_text("red dog " * 40 + "\n")
    cases = [
        (["--prefix-file", tmp_path / "prefixes", "--prefix", "a"], "give one of them"),
        (["--prefix-file", tmp_path / "prefixes", "--shortlist"], "leave out --shortlist"),
        (["--prefix-file", tmp_path / "nothing"], "nothing"),
        (["--prefix-file", tmp_path / "long"], "more than the 29 that the model takes: 'red dog red"),
    ]
    for arguments, message in cases:
        result = run("translate", small_folders["translation"], "red", *arguments, code=2)
        assert message in result.stderr.decode() and result.stderr.count(b"\n") == 1


@pytest.mark.parametrize("engine", ["core", "torch"])
def test_from_python(small_folders, engine: str) -> None:
    translator = heedful.load(small_folders["translation"], engine=engine)
    options = heedful.DecodingOptions(max_length=5)
    found = translator.translate(LINES, options, prefix=PREFIXES)
    assert found == [
        translator.translate(line, options, prefix=prefix) for line, prefix in zip(LINES, PREFIXES, strict=True)
    ]
    assert translator.translate("red", options, prefix=["dog"]) == translator.translate("red", options, prefix="dog")
    with pytest.raises(UserError, match="there are 6 texts, but 2 prefixes: give one, or one for each text"):
        translator.translate(LINES, options, prefix=["a", "b"])
    with pytest.raises(UserError, match="text 2 of prefix is None: expected a string"):
        translator.translate(["red", "dog"], options, prefix=["a", None])


def test_a_prefix_that_is_not_text(run, small_folders) -> None:
    result = run("translate", small_folders["translation"], "--prefix", "\udcff\udcfe", "red dog", code=2)
    assert result.stdout == b"" and "--prefix is not valid UTF-8" in result.stderr.decode()
