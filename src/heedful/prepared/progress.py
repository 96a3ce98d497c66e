"""How a long preparation shows its progress."""

import time
from typing import Protocol

SECONDS_BETWEEN_CALLS = 0.25


class OnProgress(Protocol):
    """Called now and then with what is being done, how much of it is done, and out of how much, if that is known."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


class ThrottledProgress:
    """Passes on the first call of each stage, its last one, and a few per second in between."""

    def __init__(self, progress: OnProgress | None) -> None:
        self._progress = progress
        self._stage: str | None = None
        self._next_call = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self._progress is None:
            return
        now = time.monotonic()
        if stage != self._stage or done == total or now >= self._next_call:
            self._stage, self._next_call = stage, now + SECONDS_BETWEEN_CALLS
            self._progress(stage, done, total)
