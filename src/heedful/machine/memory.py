"""How much memory this process may use, how it keeps freed memory, and how an error shows that it has run out."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from heedful.machine.control_group import group_settings

# What Linux tells of this process's memory, in pages.
STATM = Path("/proc/self/statm")
# The limit of a control group, and its name in the first version of control groups.
GROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")

# The numbers of two settings of glibc's allocator: how much free memory at the end of the heap is not returned to the
# system, and the largest tensors that lie in the heap (older versions accept no more than the smaller number).
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGEST_KEPT, LARGEST_IN_HEAP = 2**30, (2**25, 2**30)


def keep_freed_memory() -> None:
    """Keep freed memory for the next tensors, if the allocator is glibc's; or else the system clears it every time.

    A decoding step frees and allocates tens of megabytes: clearing them takes up to a tenth of its time.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option:
        set_option(M_TRIM_THRESHOLD, LARGEST_KEPT)
        for size in LARGEST_IN_HEAP:
            set_option(M_MMAP_THRESHOLD, size)


def memory_limit() -> int:
    """In bytes, the smallest of the machine's memory and the limits of the control groups and of the process itself."""
    limits = [_physical_memory()]
    for setting in [text for name in GROUP_LIMITS for text in group_settings(name)]:
        with suppress(ValueError):  # "max"
            limits.append(int(setting))
    if sys.platform != "win32":
        import resource

        limits += [
            soft
            for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)
            if (soft := resource.getrlimit(kind)[0]) != resource.RLIM_INFINITY
        ]
    return min(limits)


def _physical_memory() -> int:
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 4 * 2**30  # Windows reports it only through its own interface: assume little


def resident_memory() -> int | None:
    """Bytes of physical memory that this process holds now, or None where the system does not tell."""
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most that it has held
        if sys.platform == "win32":
            return None
        import resource

        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


# How torch's allocators, oneDNN and the C++ library phrase it.
MEMORY_SIGNS = ("not enough memory", "can't allocate memory", "out of memory", "memory object", "bad_alloc")


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory ran out."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in MEMORY_SIGNS)
