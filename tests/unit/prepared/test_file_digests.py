"""Files are read again when, and only when, the file system says that they were touched."""

import os
from hashlib import blake2b
from pathlib import Path

import pytest

from heedful.prepared import file_digests
from heedful.prepared.file_digests import FileDigests
from heedful.prepared.progress import ThrottledProgress


def digests(folder: Path, *files: Path) -> list[bytes]:
    return FileDigests(folder / "run" / "digests.json", ThrottledProgress(None)).of(files)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are read, each noted when that happens."""
    names: list[str] = []
    read = file_digests.read_raw_blocks

    def noted(path: Path) -> object:
        names.append(path.name)
        return read(path)

    monkeypatch.setattr(file_digests, "read_raw_blocks", noted)
    return names


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"this is {name}")
    return [tmp_path / "a", tmp_path / "b"]


def test_files_that_have_just_changed_are_read_each_time(tmp_path: Path, files: list[Path], reads: list[str]) -> None:
    expected = [blake2b(f"this is {name}".encode(), digest_size=32).digest() for name in "ab"]
    assert digests(tmp_path, *files) == digests(tmp_path, *files) == expected
    assert reads == ["a", "b", "a", "b"]
    assert not (tmp_path / "run").exists()


def test_files_that_were_not_touched_are_not_read_again(
    tmp_path: Path, files: list[Path], reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_digests, "SETTLED_SECONDS", -60.0)
    first = digests(tmp_path, *files)
    files[0].rename(tmp_path / "renamed")  # which changes its entry on some file systems
    reads.clear()
    assert digests(tmp_path, tmp_path / "renamed", files[1]) == first
    assert "b" not in reads
    # The same size, and the time of change set back: the entry tells.
    before = files[1].stat()
    files[1].write_text("that is b")
    os.utime(files[1], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digests(tmp_path, files[1]) == [blake2b(b"that is b", digest_size=32).digest()]


@pytest.mark.parametrize("content", ["", "{", "[[1,2]]", '[[1,2,3,4,"xyz"]]', "7", '[["a",2,3,4,"00"]]'])
def test_a_damaged_record_is_as_good_as_none(tmp_path: Path, files: list[Path], content: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "digests.json").write_text(content)
    assert digests(tmp_path, files[0]) == [blake2b(b"this is a", digest_size=32).digest()]
