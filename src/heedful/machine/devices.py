"""What there is to compute on."""

from __future__ import annotations

import os
import platform
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from heedful.errors import UserError
from heedful.machine.cores import available_cores
from heedful.machine.shared_work import current_sharing
from heedful.machine.torch_needed import has_torch, torch_missing

if TYPE_CHECKING:
    from concurrent.futures import Future

    import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


class Device(Protocol):
    """What a model computes on, such as a device of torch."""

    @property
    def type(self) -> str:
        """Its kind: cpu, cuda or mps."""


def choose_device(name: str) -> torch.device:
    """The device of that name; `auto` is the best one available."""
    import torch

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


def may_have_accelerator() -> bool:
    """Whether there are signs of a GPU that torch may be able to use; to be sure, torch would have to be imported."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    if sys.platform == "win32":
        return Path(os.environ.get("SYSTEMROOT", "C:\\Windows"), "System32", "nvcuda.dll").exists()
    return any(Path(each).exists() for each in ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd"))


def device_type(name: str) -> str:
    """The kind of the device of that name; without torch there is only the CPU."""
    if name == "cpu" or (name == "auto" and not may_have_accelerator()):
        return "cpu"
    if has_torch():
        return choose_device(name).type
    if name not in ("auto", "cpu"):
        raise torch_missing(f"the device {name!r}")
    return "cpu"


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Treat numbers too small for their format as zero, in this thread: operations on them take ten times as long."""
    if "torch" not in sys.modules:  # torch computes nothing here
        yield
        return
    import torch

    already = float(torch.tensor(1e-40) * 1.0) == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(already)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread, where a sentence's result does not depend on what it is batched with."""
    if "torch" not in sys.modules:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_cores_to_use: ContextVar[int | None] = ContextVar("cores_to_use", default=None)


@contextmanager
def side_by_side_on(cores: int) -> Iterator[None]:
    """Let `side_by_side`, in this thread, use this many cores, though the thread itself may be held to one."""
    token = _cores_to_use.set(cores)
    try:
        yield
    finally:
        _cores_to_use.reset(token)


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], device: Device) -> Iterator[Result]:
    """What `work` gives for each item, in order; on a CPU, all cores are used, with one thread per item.

    So a result does not depend on how many cores there are. A process that is held to one thread stays on one core.
    Items are drawn only shortly before they are worked on. Processes that work together (see `shared_work`) share them.
    """
    from concurrent.futures import ThreadPoolExecutor

    import torch

    cores = _cores_to_use.get() or (available_cores() if torch.get_num_threads() > 1 else 1)
    sharing = current_sharing()
    workers = cores if device.type == "cpu" and sharing is None else 1

    def compute(item: Item) -> Result:
        with torch.inference_mode():
            return work(item)

    with ThreadPoolExecutor(workers, initializer=hold_to_one_thread) as pool:
        if sharing is not None:  # one item at a time, as they exchange weights
            yield from sharing.each(lambda item: pool.submit(compute, item).result(), list(items))
            return
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(compute, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def hold_to_one_thread() -> None:
    """Let torch compute on one thread from now on, and treat numbers too small for their format as zero."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


def supports_bf16(device: torch.device) -> bool:
    """Whether bf16 is worth it on this device; on CPUs it is slower than fp32 where it is emulated."""
    import torch

    return device.type == "cuda" and torch.cuda.is_bf16_supported()
