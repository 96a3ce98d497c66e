"""How processes let each other know that they are alive, however long their work takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heedful.training.parallel.patience import within

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store


class Heartbeats:
    """A number in the store for each process, which grows while the process is alive and others rely on that."""

    def __init__(self, store: Store, rank: int, timeout: float) -> None:
        self.store, self.rank, self.timeout = store, rank, timeout
        self._heard: dict[int, tuple[int, float]] = {}

    @property
    def pause(self) -> float:
        """Seconds between two questions, or two beats."""
        return min(1.0, self.timeout / 5)

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Let the others know, inside the block, that this process is alive."""
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(self.pause):
                try:
                    self.store.add(self._key(self.rank), 1)
                except RuntimeError:  # the store has gone, which whoever waits for it will notice
                    return

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(self.pause)

    def listen(self) -> None:
        """Start again: silence counts from now on."""
        self._heard.clear()

    def silent(self, ranks: Sequence[int]) -> list[int]:
        """Those of `ranks` from which nothing was heard for longer than the timeout."""
        counts = within(self.timeout, lambda: [self.store.add(self._key(rank), 0) for rank in ranks])
        now = time.monotonic()
        for rank, count in zip(ranks, counts, strict=True):
            if rank not in self._heard or self._heard[rank][0] != count:
                self._heard[rank] = (count, now)
        return [rank for rank in ranks if now - self._heard[rank][1] > self.timeout]

    @staticmethod
    def _key(rank: int) -> str:
        return f"beats/{rank}"
