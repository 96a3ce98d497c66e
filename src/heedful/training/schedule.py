"""The learning rate over the course of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.config import require


@dataclass(frozen=True)
class ScheduleConfig:
    """`decay` rises over `warmup_share` of the run, then falls linearly to zero at its end.

    `inverse_square_root` is the paper's equation 3, which needs no end: `learning_rate` is its peak, and without
    one, the paper's own factor width^-0.5 applies.
    """

    kind: Literal["decay", "inverse_square_root"] = "decay"
    learning_rate: float | None = None
    warmup_steps: int = 4000
    warmup_share: float = 0.05

    def __post_init__(self) -> None:
        require(self.learning_rate or 0.0, "learning_rate", 0)
        require(self.warmup_steps, "warmup_steps", 1)
        require(self.warmup_share, "warmup_share", 0, 1)


def learning_rate(
    config: ScheduleConfig, width: int, step: int, progress: float | None, extended_at: float = 0.0
) -> float:
    """The rate of a step, counted from 1; `progress` is the share of the run that is over, if an end is set.

    A run that was extended when that share was `extended_at` had come to a rate of zero there: it warms up again,
    to the rate that a run of its new length has by then.
    """
    if config.kind == "decay":
        assert config.learning_rate is not None and progress is not None
        rise = ((progress - extended_at) / max(1.0 - extended_at, 1e-9) + 1e-3) / max(config.warmup_share, 1e-9)
        fall = (1.0 - progress) / (1.0 - config.warmup_share)
        return config.learning_rate * max(0.0, min(1.0, rise, fall))
    if config.learning_rate is not None:
        factor = config.learning_rate * config.warmup_steps**0.5
    else:
        factor = float(width**-0.5)
    return factor * min(step**-0.5, step * config.warmup_steps**-1.5)
