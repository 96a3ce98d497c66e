"""The rows of a comparison of two: what was measured of either, their ratio, and what it should be."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks import results
from benchmarks.speed.measuring import Measured


@dataclass(frozen=True)
class Goal:
    """What a ratio must be, and what is aimed at, such as ">= 1.3" and ">= 1.5"."""

    required: str = "-"
    aim: str = "-"


# How the ratio is taken: of speeds and of memory it is ours / theirs, of times theirs / ours.
Kind = Literal["speed", "time", "memory"]


@dataclass
class Comparisons:
    """Rows, collected one by one."""

    command: str
    data: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Tell how far it has come."""
        print(f"{time.monotonic() - self.started:.0f} s: {text}", flush=True)

    def add(
        self,
        what: str,
        against: str,
        kind: Kind,
        ours: Measured,
        theirs: Measured,
        unit: str,
        goal: Goal,
        **details: Any,
    ) -> None:
        """A row for one of ours beside one of theirs."""
        figures = {"ours": _figures(ours), "theirs": _figures(theirs), "figures_in": unit}
        self.add_ratio(what, against, ratio(kind, ours, theirs), "x", goal, **figures, **details)

    def add_ratio(self, what: str, against: str, value: float, unit: str, goal: Goal, **details: Any) -> None:
        """A row for a figure that is known already."""
        seconds = time.monotonic() - self.started
        row = results.row(f"{what}: against {against}", round(value, 3), unit, goal.required, seconds, self.command)
        self.rows.append(row | {"what": what, "against": against, "aim": goal.aim, **self.data, **details})
        print(f"  {row['measure']}: {row['value']} {unit} (required: {goal.required})", flush=True)


def ratio(kind: Kind, ours: Measured, theirs: Measured) -> float:
    """How many times as good ours is; of memory, how many times as much it takes."""
    return theirs.median / ours.median if kind == "time" else ours.median / theirs.median


def _figures(measured: Measured) -> list[float]:
    return [float(f"{each:.5g}") for each in (measured.median, measured.low, measured.high)]
