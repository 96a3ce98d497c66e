"""How many cores there are to compute on."""

from __future__ import annotations

import os
from contextlib import suppress

from heedful.machine.control_group import group_settings


def available_cores() -> int:
    """The number of cores that this process may use, by its affinity and its control groups."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for setting in group_settings("cpu.max"):
        with suppress(ValueError):  # "max"
            quota, period = setting.split()
            cores = min(cores, int(quota) // int(period))
    return max(1, cores)
