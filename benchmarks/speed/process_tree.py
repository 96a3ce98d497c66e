"""The memory of a process and of all that it has started."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def peaks(pid: int) -> dict[int, float]:
    """The largest resident memory, in megabytes, that each process of a tree has had so far."""
    return {each: _peak_megabytes(each) for each in _with_children(pid)}


def _with_children(pid: int) -> list[int]:
    found = [pid]
    with suppress(OSError):  # a thread may end meanwhile
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in file.read_text().split():
                found += _with_children(int(child))
    return found


def _peak_megabytes(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:  # it has ended meanwhile, or this system has no such file
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)
