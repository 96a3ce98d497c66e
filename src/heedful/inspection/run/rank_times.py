"""How long the steps of a run took in each of its processes, and which process the others waited for."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from heedful.inspection.run.run_record import Row, RunRecord

# A process counts as slower if its own part of a step takes this many times as long as the others'.
SLOWER = 1.1


@dataclass(frozen=True)
class RankTimes:
    """The steps of one process: median and longest seconds, and the median without waiting for others."""

    rank: int
    seconds: float
    longest: float
    own: float


@dataclass(frozen=True)
class StepTimes:
    """The processes of a run, over the steps that all of them have logged."""

    first_step: int
    last_step: int
    ranks: tuple[RankTimes, ...]

    @property
    def slowest(self) -> RankTimes:
        """The process that takes longest, not counting its waiting."""
        return max(self.ranks, key=lambda each: each.own)

    def in_words(self) -> str:
        """Which process is the slowest, if one is."""
        slowest = self.slowest
        others = median(each.own for each in self.ranks if each is not slowest)
        where = f"{len(self.ranks)} processes, steps {self.first_step:,} to {self.last_step:,}"
        if slowest.own < SLOWER * others:
            return (
                f"{where}: a step takes {slowest.seconds:.3g} s; rank {slowest.rank} is the slowest, "
                "by less than a tenth"
            )
        return (
            f"{where}: rank {slowest.rank} is the slowest, with {slowest.own:.3g} s of its own per step; the others "
            f"take {others:.3g} s (median), and wait for it"
        )


def step_times(run: RunRecord) -> StepTimes | None:
    """The times of the processes that took the last steps of a run; None if there was one process."""
    logs = {rank: {row["step"]: row for row in rows} for rank, rows in run.rank_steps.items() if rows}
    last = max((max(rows) for rows in logs.values()), default=0)
    logs = {rank: rows for rank, rows in logs.items() if last in rows}
    if len(logs) < 2:
        return None
    common = sorted(set.intersection(*(set(rows) for rows in logs.values())))
    ranks = tuple(_times(rank, [rows[step] for step in common]) for rank, rows in sorted(logs.items()))
    return StepTimes(common[0], common[-1], ranks)


def _times(rank: int, rows: list[Row]) -> RankTimes:
    seconds = [float(row["seconds"]) for row in rows]
    own = [row["seconds"] - row.get("waited", 0.0) for row in rows]
    return RankTimes(rank, median(seconds), max(seconds), median(own))
