"""The time that computing takes: on one core that of the processor, which other programs do not disturb."""

from __future__ import annotations

import time

import torch


def seconds_now() -> float:
    """Seconds since some moment: of this process's own work on one core, and of a clock on several."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()
