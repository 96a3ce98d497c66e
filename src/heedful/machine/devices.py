"""What there is to compute on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch

from heedful.errors import UserError
from heedful.machine.cores import available_cores

Item = TypeVar("Item")
Result = TypeVar("Result")


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` is the best one that there is."""
    present = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(each for each, there in present.items() if there)
    if not present.get(name, False):
        there = ", ".join(each for each in present if present[each])
        raise UserError(f"this machine (or this build of torch) has no device {name!r}: choose from {there}")
    return torch.device(name)


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Treat numbers too small for their format as zero, in this thread: operations on them take ten times as long."""
    already = float(torch.tensor(1e-40) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(already)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, where a sentence's result does not depend on what it is batched with."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_cores_to_use: ContextVar[int | None] = ContextVar("cores_to_use", default=None)


@contextmanager
def side_by_side_on(cores: int) -> Iterator[None]:
    """Let `side_by_side` work on so many cores, in this thread, which may itself be held to one."""
    token = _cores_to_use.set(cores)
    try:
        yield
    finally:
        _cores_to_use.reset(token)


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], device: torch.device) -> Iterator[Result]:
    """What `work` gives for each item, in order; on a CPU on all cores, each item on one thread.

    So a result does not depend on how many cores there are. A process that is held to one thread stays on one core.
    No more items are drawn than are worked on soon.
    """
    cores = _cores_to_use.get() or (available_cores() if torch.get_num_threads() > 1 else 1)
    workers = cores if device.type == "cpu" else 1

    def compute(item: Item) -> Result:
        with torch.inference_mode():
            return work(item)

    with ThreadPoolExecutor(workers, initializer=_start_worker) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(compute, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _start_worker() -> None:
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def supports_bf16(device: torch.device) -> bool:
    """Whether bf16 is worth it on this device; on CPUs it is slower than fp32 where it is emulated."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported()
