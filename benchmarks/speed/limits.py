"""What the machine can do at most: matrix products in fp32, and memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks import results
from heedful.machine.devices import available_cores

COMMAND = "heedful bench limits"


def best_of(work: Callable[[], Any], seconds: float) -> float:
    """The shortest time of one call, in as many as fit."""
    work()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def gemm_peak(threads: int, seconds: float = 1.0) -> float:
    """GFLOP/s of the best of several shapes that Transformers have."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    best = 0.0
    for rows, inner, columns in ((1024, 512, 512), (1024, 512, 2048), (2048, 1024, 1024), (2048, 2048, 2048)):
        a, b = torch.randn(rows, inner), torch.randn(columns, inner)
        out = torch.empty(rows, columns)
        took = best_of(lambda a=a, b=b, out=out: torch.mm(a, b.T, out=out), seconds / 4)  # type: ignore[misc]
        best = max(best, 2 * rows * inner * columns / took / 1e9)
    torch.set_num_threads(before)
    return best


def memory_bandwidth(threads: int, seconds: float = 1.0) -> float:
    """GB/s of reading: a matrix far larger than any cache, times a vector."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    matrix, vector = torch.ones(16384, 8192), torch.ones(8192)
    out = torch.empty(16384)
    took = best_of(lambda: torch.mv(matrix, vector, out=out), seconds)
    torch.set_num_threads(before)
    return matrix.numel() * 4 / took / 1e9


def main(quick: bool) -> None:
    """Measure and write."""
    seconds, started = (0.2 if quick else 4.0), time.monotonic()
    rows = []
    for threads in sorted({1, available_cores()}):
        for what, measure, unit in (
            ("GEMM peak", gemm_peak, "GFLOP/s"),
            ("memory bandwidth", memory_bandwidth, "GB/s"),
        ):
            value = round(measure(threads, seconds), 1)
            row = results.row(f"{what}, threads: {threads}", value, unit, "-", time.monotonic() - started, COMMAND)
            rows.append(row | {"what": what, "threads": threads})
    results.write(name_of("limits", quick), rows)


def name_of(name: str, quick: bool) -> str:
    """The name of a result file; those of a try are kept apart."""
    return f"speed_{name}_quick" if quick else f"speed_{name}"
