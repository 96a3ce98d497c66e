"""Where a run stands."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from heedful.errors import UserError


@dataclass
class Position:
    """Steps taken, and the batch of the epoch that comes next."""

    step: int = 0
    epoch: int = 0
    batch: int = 0


@dataclass
class RunState:
    """All of a run's state but its tensors.

    `validations_passed` counts the validations that were due so far, by the share of the run that was over.
    `best_rank` is that of the validation whose weights are kept (see `Validation.rank`).
    A worker computes its share of a batch in `split` parts; `reserve` is the time that the last validation needs,
    `validating` the time that all of them have taken; the first step began `began` seconds after the run.
    Of a time budget, the share `progress` was over at `progress_at` seconds; a run that was extended went on when the
    share `extended_at` of its new length was over. `unsaved_scores` are those of weights that are the best so far and
    go into the model folder after this checkpoint.
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> RunState:
        """The state that `to_dict` wrote; a UserError if that was in another version of heedful."""
        try:
            return RunState(**{**data, "position": Position(**data["position"])})
        except TypeError:
            raise UserError(
                "this run was begun by another version of heedful: end it with that one, or begin in another folder"
            ) from None
