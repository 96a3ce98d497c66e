"""Files that are replaced in one step."""

import sys
from pathlib import Path

import pytest

from heedful.files import replacing


def write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text)


def test_two_who_write_the_same_file_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with replacing(path) as first:
        first.write_text("the first, whole")
        with replacing(path) as second:
            second.write_text("the second")
        assert path.read_text() == "the second"
    assert path.read_text() == "the first, whole"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_the_users_stays(tmp_path: Path) -> None:
    (tmp_path / "writing-out.txt").mkdir()
    (tmp_path / "writing-out.txt" / "notes").write_text("precious")
    write(tmp_path / "out.txt", "new")
    assert (tmp_path / "writing-out.txt" / "notes").read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_what_a_link_leads_to_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "real.txt").chmod(0o600)
    (tmp_path / "out.txt").symlink_to("real.txt")
    write(tmp_path / "out.txt", "new")
    assert (tmp_path / "out.txt").is_symlink() and (tmp_path / "real.txt").read_text() == "new"
    assert (tmp_path / "real.txt").stat().st_mode & 0o777 == 0o600
