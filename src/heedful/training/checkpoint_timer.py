"""When a checkpoint is due."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# The first one comes early: until then, a crash loses everything.
FIRST_SECONDS = 2.0
# After that a crash loses little, so writing may take only a small share of the time.
FEWEST_SECONDS = 5.0
LARGEST_SHARE = 0.03


class CheckpointTimer:
    """Says when to save: after the pause that was asked for, or else one that depends on how long saving takes."""

    def __init__(self, asked: float | None) -> None:
        self.asked = asked
        self.pause = FIRST_SECONDS if asked is None else min(FIRST_SECONDS, asked)
        self.saved_at = time.monotonic()

    def due(self) -> bool:
        """Whether to save now."""
        return time.monotonic() - self.saved_at >= self.pause

    def begin(self) -> None:
        """Note that a checkpoint is on its way, so no other is due."""
        self.saved_at = time.monotonic()

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Measure a save, from the first byte to the last."""
        started = time.monotonic()
        yield
        self.saved_at = time.monotonic()
        needed = (self.saved_at - started) / LARGEST_SHARE
        self.pause = max(FEWEST_SECONDS, needed) if self.asked is None else self.asked
