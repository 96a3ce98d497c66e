"""Interleaved measurements: A, B, A, B, ..., so that what slows the machine for a while slows all alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """The median of some figures, and the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, figures: list[float]) -> Measured:
        """Those of a list."""
        return cls(statistics.median(figures), min(figures), max(figures))


def interleaved(measures: dict[str, Callable[[], float]], rounds: int, *, warm: bool = False) -> dict[str, Measured]:
    """Measure each in turn, so many times, after a round that only warms up, unless all is `warm` already."""
    figures: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(warm, rounds + 1):
        for name, measure in measures.items():
            figure = measure()
            if number:
                figures[name].append(figure)
    return {name: Measured.of(each) for name, each in figures.items()}
