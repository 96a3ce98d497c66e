"""One run at a time in a folder: another is refused at once, a restart waits for its earlier start."""

import threading
import time
from pathlib import Path

import filelock
import pytest

from heedful.errors import UserError
from heedful.training.lock import LAUNCH, locked


def test_a_restart_waits_for_an_earlier_start_of_the_same_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LAUNCH, "mine")
    told: list[str] = []
    with locked(tmp_path, 0.0, told.append):
        pass
    earlier = filelock.FileLock(tmp_path / "run" / "lock", thread_local=False)
    earlier.acquire()
    threading.Timer(0.5, earlier.release).start()
    begin = time.monotonic()
    with locked(tmp_path, 20.0, told.append):
        assert 0.4 < time.monotonic() - begin < 15
    assert told == [f"an earlier start of this run is still at work in {tmp_path}: waiting for it to end"]


def test_an_earlier_start_that_does_not_end_is_not_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LAUNCH, "mine")
    with locked(tmp_path, 0.0, print), pytest.raises(UserError, match="another run is at work"):
        locked(tmp_path, 0.3, print).__enter__()


@pytest.mark.parametrize("other", ["another", None])
def test_any_other_run_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str | None) -> None:
    monkeypatch.setenv(LAUNCH, "mine")
    with locked(tmp_path, 0.0, print):
        if other:
            monkeypatch.setenv(LAUNCH, other)
        else:
            monkeypatch.delenv(LAUNCH)
        begin = time.monotonic()
        with pytest.raises(UserError, match="another run is at work"):
            locked(tmp_path, 60.0, print).__enter__()
        assert time.monotonic() - begin < 30


def test_launches_that_torchrun_gave_no_name_are_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LAUNCH, "none")
    told: list[str] = []
    with locked(tmp_path, 0.0, print):
        assert not (tmp_path / "run" / "launch").exists()
        (tmp_path / "run" / "launch").write_text("none")  # as earlier versions did
        with pytest.raises(UserError, match="another run is at work"):
            locked(tmp_path, 0.1, told.append).__enter__()
    assert told == []


def test_a_run_without_launcher_leaves_no_name_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LAUNCH, "mine")
    with locked(tmp_path, 0.0, print):
        assert (tmp_path / "run" / "launch").read_text() == "mine"
    monkeypatch.delenv(LAUNCH)
    with locked(tmp_path, 0.0, print):
        assert not (tmp_path / "run" / "launch").exists()
