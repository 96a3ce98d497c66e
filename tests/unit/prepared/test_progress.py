import pytest

from heedful.prepared import progress
from heedful.prepared.progress import ThrottledProgress


def test_calls_are_rare_but_each_stage_has_its_first_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    calls: list[tuple[str, int, int | None]] = []
    throttled = ThrottledProgress(lambda *call: calls.append(call))
    for done in range(1, 1010):
        now += 0.001
        throttled("reading", done, 1009)
    throttled("encoding", 0, None)
    throttled("encoding", 1, None)
    assert calls[0] == ("reading", 1, 1009)
    assert calls[-2:] == [("reading", 1009, 1009), ("encoding", 0, None)]
    assert len(calls) in (6, 7)


def test_no_one_need_listen() -> None:
    assert ThrottledProgress(None)("reading", 1, 2) is None
