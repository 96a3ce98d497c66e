"""Where a run stands."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from heedful.errors import UserError


@dataclass
class Position:
    """Steps taken, and the next batch of the epoch."""

    step: int = 0
    epoch: int = 0
    batch: int = 0


@dataclass(frozen=True)
class MetricsMark:
    """How far the metrics of a run had come, in bytes, and the checksum of those bytes."""

    bytes: int
    blake2b: str


@dataclass
class RunState:
    """All of a run's state except its tensors.

    `validations_passed` counts the validations that were due so far, by the share of the run that was over.
    `best_rank` is that of the validation whose weights are kept (see `Validation.rank`).
    A worker computes its share of a batch in `split` parts; `reserve` is the time that the last validation needs,
    `validating` the time that all of them have taken; the first step began `began` seconds after the run.
    With a time budget, the share `progress` was over at `progress_at` seconds; an extended run went on when the
    share `extended_at` of its new length was over. `unsaved_scores` are those of weights that are the best so far and
    go into the model folder after this checkpoint.
    `metrics` says how far metrics.jsonl had come; earlier versions did not record it.
    """

    position: Position = field(default_factory=Position)
    best_rank: list[float] | None = None
    validations_since_best: int = 0
    validation_steps: list[int] = field(default_factory=list)
    validations_passed: int = 0
    split: int = 1
    elapsed: float = 0.0
    began: float = 0.0
    reserve: float = 0.0
    validating: float = 0.0
    progress: float = 0.0
    progress_at: float = 0.0
    extended_at: float = 0.0
    unsaved_scores: dict[str, float] | None = None
    finished: bool = False
    metrics: MetricsMark | None = None

    @property
    def is_validated(self) -> bool:
        """Whether the weights have been validated since the last step."""
        return self.validation_steps[-1:] == [self.position.step]

    def note_if_best(self, rank: list[float], scores: dict[str, float]) -> None:
        """Note whether the weights with this rank and these scores are the best so far."""
        if self.best_rank is None or rank < self.best_rank:
            self.best_rank, self.validations_since_best, self.unsaved_scores = rank, 0, scores
        else:
            self.validations_since_best += 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> RunState:
        """The state that `to_dict` wrote; a UserError if another version of heedful did, a ValueError for nonsense."""
        mark = data.get("metrics")
        position = data.get("position")
        if not isinstance(position, dict) or not asdict(Position()).keys() <= position.keys():
            raise ValueError("its position makes no sense")
        if not isinstance(mark, dict | None) or mark == {}:
            raise ValueError("its metrics make no sense")
        try:
            nested = {"position": Position(**position), "metrics": MetricsMark(**mark) if mark else None}
            state = RunState(**{**data, **nested})
        except TypeError:
            raise UserError(
                "this run was started by another version of heedful: finish it with that one, or start in another "
                "folder"
            ) from None
        state.check()
        return state

    def check(self) -> None:
        """Raise a ValueError for a state that no run can reach."""
        position, mark = self.position, self.metrics
        counts = {**asdict(position), "split": self.split, "validations_passed": self.validations_passed}
        counts |= {"validations_since_best": self.validations_since_best, "metrics": mark.bytes if mark else 0}
        times = {name: getattr(self, name) for name in ("elapsed", "began", "reserve", "validating", "progress_at")}
        shares = {name: getattr(self, name) for name in ("progress", "extended_at")}
        rank, scores = self.best_rank, self.unsaved_scores
        wrong = [name for name, value in counts.items() if type(value) is not int or not 0 <= value < 2**53]
        wrong += [name for name, value in times.items() if not _is_number(value) or not 0 <= value < math.inf]
        wrong += [name for name, value in shares.items() if not _is_number(value) or not 0 <= value <= 1]
        if mark and not isinstance(mark.blake2b, str):
            wrong.append("metrics")
        if not (isinstance(self.validation_steps, list) and all(type(each) is int for each in self.validation_steps)):
            wrong.append("validation_steps")
        if rank is not None and not (isinstance(rank, list) and rank and all(map(_is_number, rank))):
            wrong.append("best_rank")
        if scores is not None and not (isinstance(scores, dict) and all(map(_is_number, scores.values()))):
            wrong.append("unsaved_scores")
        if type(self.finished) is not bool:
            wrong.append("finished")
        if not wrong and self.split < 1:
            wrong.append("split")
        if wrong:
            raise ValueError(f"its {wrong[0]} makes no sense")


def _is_number(value: object) -> bool:
    return type(value) in (int, float)
