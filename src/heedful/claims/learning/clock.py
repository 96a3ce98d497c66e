"""The time that a computation takes: on one core, processor time, which other programs do not disturb."""

from __future__ import annotations

import time

import torch


def seconds_now() -> float:
    """Seconds since some moment: processor time of this process on one core, clock time on several."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()
