"""The result of measuring a claim: numbers with their spread, charts, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["holds", "holds in part", "does not hold at this size", "too short to tell"]
# The loss of a run that diverged, and the largest that is shown of any other: a number, for JSON and for charts.
DIVERGED = 99.0


@dataclass(frozen=True)
class Number:
    """A measured number: its mean, least and greatest over this many runs."""

    name: str
    mean: float
    low: float
    high: float
    runs: int
    unit: str = ""


@dataclass(frozen=True)
class Series:
    """A line of a chart; `low` and `high` are the spread over the runs, if there were several."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Chart:
    """A line chart, or, with `places`, a bar chart with these names."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What was run, what came out, and what that says about the claim."""

    ran: str
    verdict: Verdict
    because: str
    numbers: tuple[Number, ...]
    charts: tuple[Chart, ...]


def number(name: str, values: Sequence[float], unit: str = "") -> Number:
    """A number from its value in each run."""
    assert values and all(math.isfinite(each) for each in values), (name, values)
    diverged = sum(each >= DIVERGED for each in values) if unit.startswith("nats") else 0
    if diverged:
        name += f" ({diverged} of {len(values)} diverged)"
    return Number(name, sum(values) / len(values), min(values), max(values), len(values), unit)


def shown_loss(loss: float) -> float:
    """A loss that a chart can show, even for a model whose training diverged."""
    return min(loss, DIVERGED) if math.isfinite(loss) else DIVERGED


def mean_loss(losses: Sequence[float]) -> float:
    """The mean of some losses of a run; it has diverged if one of them has."""
    return DIVERGED if max(losses) >= DIVERGED else mean(losses)


def series(name: str, x: Sequence[float], runs: Sequence[Sequence[float]]) -> Series:
    """A line from the values of each run at all places."""
    columns = [[float(each) for each in column] for column in zip(*runs, strict=True)]
    means = tuple(sum(column) / len(column) for column in columns)
    assert len(means) == len(x) and all(map(math.isfinite, means)), (name, means)
    places = tuple(float(each) for each in x)
    if len(runs) == 1:
        return Series(name, places, means)
    return Series(name, places, means, tuple(map(min, columns)), tuple(map(max, columns)))


def bars(title: str, y_label: str, places: Sequence[str], lines: Sequence[Series]) -> Chart:
    """A bar chart whose series have a value for each place."""
    return Chart(title, "", y_label, tuple(lines), places=tuple(places))


def mean(values: Sequence[float]) -> float:
    """The mean of some values."""
    return sum(values) / len(values)


def clearly_below(these: Sequence[float], those: Sequence[float]) -> bool:
    """Whether every run of the first kind is below every run of the second."""
    return max(these) < min(those)


def weighed(words: str, parts: Mapping[str, bool]) -> tuple[Verdict, str]:
    """The verdict by whether all, some or none of a claim's parts were found, and the words with which parts were."""
    held = sum(parts.values())
    verdict: Verdict = "holds" if held == len(parts) else "holds in part" if held else "does not hold at this size"
    return verdict, told_parts(words, parts)


def told_parts(words: str, parts: Mapping[str, bool]) -> str:
    """The words, and the names of the parts of a claim that were found and of those that were not."""
    for title, wanted in (("found", True), ("not found", False)):
        names = [name for name, held in parts.items() if held == wanted]
        words += f"; {title}: {', '.join(names)}" if names else ""
    return words


def fitted_power(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent p of the power law y = c x^p that fits best, by least squares of the logarithms."""
    logs = [(math.log(a), math.log(b)) for a, b in zip(x, y, strict=True)]
    centre_x, centre_y = mean([a for a, _ in logs]), mean([b for _, b in logs])
    above = sum((a - centre_x) * (b - centre_y) for a, b in logs)
    return above / sum((a - centre_x) ** 2 for a, _ in logs)
