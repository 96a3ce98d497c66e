"""What another process has checked is opened as it is; what is of other files is made anew, and said so."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.prepared import checksums
from heedful.prepared.data_report import DataReport
from heedful.prepared.folder import Expected, Ingredients, PreparedFolder, prepare_once
from heedful.prepared.progress import ThrottledProgress


def prepare(folder: Path, expected: Expected | None = None, choice: int = 1) -> PreparedFolder:
    def make(partial: Path, report: DataReport) -> dict[str, Any]:
        (partial / "numbers.bin").write_bytes(b"12345")
        return {"choice": choice}

    file = folder / "a.txt"
    return prepare_once(
        folder / "run", Ingredients([file], ["a.txt"], [choice]), make, ThrottledProgress(None), expected
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("a text")
    return tmp_path


def test_what_is_checked_is_opened_without_reading_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepare(folder)
    (folder / "a.txt").unlink()  # it is not needed either
    monkeypatch.setattr(checksums, "checksum", lambda path: pytest.fail(f"{path} is read"))
    opened = prepare(folder, Expected(made.key, is_checked=True))
    assert (opened.path, opened.key, opened.facts, opened.remarks) == (made.path, made.key, {"choice": 1}, [])


def test_a_folder_that_is_not_the_one_that_was_checked_is_refused(folder: Path) -> None:
    key = prepare(folder).key
    whole = shutil.copytree(folder / "run", folder / "whole")
    with pytest.raises(UserError, match="it is of other data"):
        prepare(folder, Expected("another", is_checked=True))
    (folder / "run" / "prepared" / "numbers.bin").write_bytes(b"1234")
    with pytest.raises(UserError, match="has 4 bytes, expected 5"):
        prepare(folder, Expected(key, is_checked=True))
    shutil.rmtree(folder / "run" / "prepared")
    with pytest.raises(UserError, match=r"it is not there.*must see the same --out folder"):
        prepare(folder, Expected(key, is_checked=True))
    assert sorted(path.name for path in (folder / "run").iterdir()) == ["data-report.jsonl"]
    shutil.copytree(whole, folder / "run", dirs_exist_ok=True)
    assert prepare(folder, Expected(key, is_checked=True)).key == key


def test_data_of_other_choices_is_made_anew_which_is_said(folder: Path) -> None:
    assert prepare(folder).remarks == prepare(folder).remarks == []
    (remark,) = prepare(folder, choice=2).remarks
    assert "was prepared from other files or settings: it was prepared again" in remark
    assert prepare(folder, choice=2).remarks == []
