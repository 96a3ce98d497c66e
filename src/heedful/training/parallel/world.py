"""The processes of a run: which one this is, and what they tell each other."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from heedful.errors import LostProcessError, UserError
from heedful.training.parallel.heartbeats import Heartbeats
from heedful.training.parallel.meeting import meet
from heedful.training.parallel.network import choose_interface
from heedful.training.parallel.patience import within
from heedful.training.parallel.reports import Reports

# How long processes wait for each other at the start, at least.
START_SECONDS = 120.0
# The pause between the first two questions whether the leading process has done something; later ones are longer.
FIRST_PAUSE_SECONDS = 0.01
# The place in gloo's source that raised an error, with which its messages begin.
_SOURCE_PLACE = re.compile(r"\[[^\]]*\.(?:cc|cpp|h):\d+\]")


class World:
    """A run of one process, which agrees with itself; `Processes` is one of several."""

    rank, size, local_rank = 0, 1, 0
    # How long it waits for others, in seconds.
    timeout = 0.0
    # Seconds of the present step in which this process waited for others, as far as that can be told from computing.
    waited = 0.0

    @property
    def leads(self) -> bool:
        """Whether this process decides, writes and speaks for all."""
        return self.rank == 0

    def first(self, value: float | None) -> float | None:
        """The leading process's value."""
        return value

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        return flag

    def sums(self, numbers: Sequence[int]) -> list[int]:
        """The sums of numbers over all processes."""
        return list(numbers)

    def number_sums(self, numbers: list[float]) -> list[float]:
        """The same for numbers that need not be whole."""
        return numbers

    def by_leader(self, what: str, work: Callable[[], Any]) -> None:
        """Have the leading process do something that may take long, while the others wait."""
        work()

    def alive(self) -> AbstractContextManager[None]:
        """Let the others know, inside the block, that this process is alive."""
        return nullcontext()

    def join(self, thread: threading.Thread) -> None:
        """Wait for a thread that works with those of the others, which are in `alive`; an error if one hangs."""
        thread.join()

    def naming_failures(self) -> AbstractContextManager[None]:
        """Turn what torch says when another process hangs or is gone into an error that names the rank and step."""
        return nullcontext()

    def share(self, text: str) -> str:
        """The leading process's text."""
        return text

    def at_step(self, step: int) -> None:
        """Note the current step, for errors to name."""

    def leave(self) -> None:
        """Leave the group of processes."""


ALONE = World()


def started_by_launcher() -> bool:
    """Whether torchrun, or `--processes`, has started this process as one of several (or as one that could be)."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


class Processes(World):
    """One of several processes, which meet at the address that their launcher put into the environment."""

    def __init__(self, device_type: str, timeout_seconds: float) -> None:
        import torch.distributed as dist
        from torch.distributed.rendezvous import rendezvous

        self.timeout = timeout_seconds
        self.step = 0
        self._led = 0
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        backend = "gloo"
        if device_type == "cuda":
            torch.cuda.set_device(self.local_rank)
            backend = "cpu:gloo,cuda:nccl"
        limit, start = timedelta(seconds=timeout_seconds), timedelta(seconds=max(START_SECONDS, timeout_seconds))
        store, self.rank, self.size = next(iter(rendezvous("env://", timeout=start)))
        # All are here before the shorter limit applies: a starting process may have to wait for its machine.
        self.store = meet(store, self.rank, self.size, start.total_seconds())
        self.beats = Heartbeats(self.store, self.rank, timeout_seconds)
        self.reports = Reports(self.store, self.rank, self.size, timeout_seconds)
        choose_interface()
        dist.init_process_group(backend, store=self.store, rank=self.rank, world_size=self.size, timeout=limit)

    def first(self, value: float | None) -> float | None:
        import torch.distributed as dist

        shared = torch.tensor([float("nan") if value is None else float(value)], dtype=torch.float64)
        with self._meeting():
            dist.broadcast(shared, 0)
        return None if bool(shared.isnan()) else shared.item()

    def any(self, flag: bool) -> bool:
        return self.sums([int(flag)])[0] > 0

    def sums(self, numbers: Sequence[int]) -> list[int]:
        return self._sums(torch.tensor(numbers, dtype=torch.int64))

    def number_sums(self, numbers: list[float]) -> list[float]:
        return self._sums(torch.tensor(numbers, dtype=torch.float64))

    def _sums(self, shared: Tensor) -> list[Any]:
        import torch.distributed as dist

        with self._meeting():
            dist.all_reduce(shared)
        return shared.tolist()

    def by_leader(self, what: str, work: Callable[[], Any]) -> None:
        """The others wait for as long as the leading process shows that it is alive."""
        self._led += 1
        done = f"led/{self._led}"
        if not self.leads:
            answer = self._follow(what, done)
            if answer != "done":
                self.reports.give_up()
                raise UserError(answer)
            return
        try:
            with self.beats.beating():
                work()
        except BaseException as error:
            self.store.set(done, f"failed: {error}")
            raise
        self.store.set(done, "done")

    def share(self, text: str) -> str:
        self._led += 1
        shared = f"shared/{self._led}"
        if not self.leads:
            return self._follow("share what it has decided", shared)
        self.store.set(shared, text)
        return text

    def _follow(self, what: str, key: str) -> str:
        """What the leading process writes into the store once it has done something."""
        began = time.monotonic()
        self.beats.listen()
        with self.reports.following():
            # A request that waits in the store would keep this process's other threads from reporting that it lives.
            while not self._written(key):
                waited = time.monotonic() - began
                time.sleep(min(self.beats.pause, FIRST_PAUSE_SECONDS + waited / 10))
                if self._silent([0]):
                    raise self._gone(f"nothing was heard for {self.timeout:g} s of rank 0, which was to {what}")
        return self.store.get(key).decode()

    def _written(self, key: str) -> bool:
        try:
            return within(self.timeout, lambda: self.store.check([key]))
        except (RuntimeError, TimeoutError) as error:
            raise self._gone(f"the store does not answer ({_reason(error)})") from None

    def _silent(self, ranks: Sequence[int]) -> list[int]:
        try:
            return self.beats.silent(ranks)
        except (RuntimeError, TimeoutError) as error:
            raise self._gone(f"the store does not answer ({_reason(error)})") from None

    def alive(self) -> AbstractContextManager[None]:
        return self.beats.beating()

    def join(self, thread: threading.Thread) -> None:
        self.beats.listen()
        while thread.is_alive():
            thread.join(self.beats.pause)
            if self._silent(range(self.size)) and thread.is_alive():
                raise self._gone(f"nothing was heard for {self.timeout:g} s while a checkpoint was written")

    def at_step(self, step: int) -> None:
        self.step, self.waited = step, 0.0

    @contextmanager
    def _meeting(self) -> Iterator[None]:
        """An exchange of a few numbers: the time it takes is spent waiting for the last process to arrive."""
        began = time.monotonic()
        with self.naming_failures():
            yield
        self.waited += time.monotonic() - began

    @contextmanager
    def naming_failures(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            text = str(error)
            if not any(word in text for word in ("imed out", "imeout", "onnection", "losed", "eset by peer", "gloo")):
                raise
            raise self._gone(_reason(error)) from None

    def _gone(self, reason: str) -> UserError:
        silent = "another process"
        try:
            if hung := self.reports.hung():
                silent = f"rank {', '.join(map(str, hung))}"
        except (RuntimeError, TimeoutError):  # the store went with the process or machine that held it
            silent = "rank 0"
        return LostProcessError(
            f"{silent} did not answer at step {self.step} (noticed by rank {self.rank}: {reason}); the same command "
            "goes on from the last checkpoint",
            self.reports.first_to_tell(),
        )

    def leave(self) -> None:
        import torch.distributed as dist

        self.reports.end()
        if dist.is_initialized():
            dist.destroy_process_group()


def _reason(error: BaseException) -> str:
    """The first sentence of torch's message, without the place in its source."""
    words = _SOURCE_PLACE.sub("", str(error)).strip()
    return re.split(r"\.?\n|\. |\.$", words, maxsplit=1)[0][:160]
