"""What each process of a run last reported, from which the others tell who hangs when they wait in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heedful.training.parallel.patience import within

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

# How long nothing must be heard of a process that hangs, if all others have been heard of meanwhile.
SILENT_SECONDS = 3.0
# How long nothing must be heard of processes that hang together, as those of a machine that is gone: on a crowded
# machine, one that works may be late with its reports, too.
ALL_SILENT_SECONDS = 10.0
WORKS, FOLLOWS, IN_VAIN = "works", "follows", "waits in vain"


@dataclass(frozen=True)
class Heard:
    """What was last heard of a process, and how long ago."""

    state: str
    silence: float


class Reports:
    """Lets the others know, for as long as this process runs, that it is alive and whether it only waits.

    Who gives up waiting first does not know who hangs: others may still compute, or wait for one that waits itself.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: float) -> None:
        self.store, self.timeout = store, timeout
        self.state = WORKS
        self._own, self._keys = f"reports/{rank}", {each: f"reports/{each}" for each in range(size) if each != rank}
        self._number, self._stop = 0, threading.Event()
        self._report()  # before this process meets the others, which may then rely on finding it
        self._thread = threading.Thread(target=self._go_on_reporting, daemon=True)
        self._thread.start()

    @property
    def pause(self) -> float:
        """Seconds between two reports."""
        return min(1.0, self.timeout / 5)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Inside the block, this process only waits for the leading one."""
        self.state = FOLLOWS
        try:
            yield
        finally:
            if self.state == FOLLOWS:
                self.state = WORKS

    def give_up(self) -> None:
        """Report that this process waits in vain, or ends because another one does: it is not the one that hangs."""
        self.state = IN_VAIN

    def hung(self) -> list[int]:
        """The ranks for which this process, and all that report the same, wait in vain."""
        self.give_up()
        began = time.monotonic()
        last: dict[int, tuple[str, float]] = {}
        while True:
            time.sleep(self.pause)
            now = time.monotonic()
            for rank, report in self._read().items():
                if rank not in last or last[rank][0] != report:
                    last[rank] = (report, now if rank in last else began)
            heard = {rank: Heard(report.partition(" ")[2], now - since) for rank, (report, since) in last.items()}
            found = hung_among(heard, now - began, self.timeout)
            if found is not None:
                return found

    def first_to_tell(self) -> bool:
        """Whether no other process has said yet that it would tell which one hangs."""
        try:
            return within(2 * SILENT_SECONDS, lambda: self.store.add("told", 1)) == 1
        except (RuntimeError, TimeoutError):  # without the store nobody knows
            return True

    def end(self) -> None:
        """Report for the last time."""
        self._stop.set()
        self._thread.join(self.pause)

    def _read(self) -> dict[int, str]:
        reports = within(2 * SILENT_SECONDS, lambda: self.store.multi_get(list(self._keys.values())))
        return {rank: report.decode() for rank, report in zip(self._keys, reports, strict=True)}

    def _report(self) -> None:
        self._number += 1
        self.store.set(self._own, f"{self._number} {self.state}")

    def _go_on_reporting(self) -> None:
        stopped = False
        while not stopped:
            stopped = self._stop.wait(self.pause)
            try:
                self._report()
            except RuntimeError:  # the store has gone, which whoever waits for it will notice
                return


def hung_among(heard: Mapping[int, Heard], listened: float, timeout: float) -> list[int] | None:
    """The ranks that hang, given what was heard of all others in the seconds since; None if it cannot be told yet."""
    # One that waits in vain may have ended since.
    others = {rank: each for rank, each in heard.items() if each.state != IN_VAIN}
    gone = [rank for rank, each in others.items() if each.silence >= ALL_SILENT_SECONDS]
    silent = [rank for rank, each in others.items() if each.silence >= SILENT_SECONDS]
    if gone or len(silent) == 1:
        return gone or silent
    # All may be alive, and one stuck nevertheless. Whoever else needs it gives up after the timeout at the latest.
    stuck = [rank for rank, each in others.items() if each.state == WORKS]
    enough = SILENT_SECONDS if len(stuck) <= 1 else max(SILENT_SECONDS, timeout)
    return stuck if not silent and listened >= enough else None
