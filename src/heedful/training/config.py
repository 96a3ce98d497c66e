"""The settings of a training run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from heedful.config import require
from heedful.errors import UserError
from heedful.training.optimizer import OptimizerConfig
from heedful.training.schedule import ScheduleConfig
from heedful.weights_writer import SHARD_BYTES

# Torch counts milliseconds, up to a maximum; no run waits this long.
LONGEST_TIMEOUT = 1e7


@dataclass(frozen=True)
class LimitConfig:
    """When a run ends: after steps, epochs or a time such as 30m; with none of them, when it stops improving."""

    steps: int | None = None
    epochs: int | None = None
    budget: str | None = None
    patience: int = 5

    def __post_init__(self) -> None:
        given = [name for name in ("steps", "epochs", "budget") if getattr(self, name) is not None]
        if len(given) > 1:
            raise UserError(f"give only one of steps, epochs and budget, not {' and '.join(given)}")
        for name in ("steps", "epochs", "patience"):
            value = getattr(self, name)
            require(1 if value is None else value, name, 1)
        if self.budget is not None:
            seconds(self.budget)


@dataclass(frozen=True)
class BatchConfig:
    """Tokens, counted on both sides with padding, in an optimizer step and in memory at once."""

    tokens_per_step: int | None = None
    tokens_per_batch: int | None = None

    def __post_init__(self) -> None:
        for name in ("tokens_per_step", "tokens_per_batch"):
            value = getattr(self, name)
            require(1 if value is None else value, name, 1)


@dataclass(frozen=True)
class MachineConfig:
    """What a run computes on: `workers` compute the parts of a step side by side, with `threads` each."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    workers: int | None = None
    threads: int | None = None
    precision: Literal["fp32", "bf16"] | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "threads"):
            value = getattr(self, name)
            require(1 if value is None else value, name, 1)


@dataclass(frozen=True)
class SavingConfig:
    """How often a run is validated and saved; without `checkpoint_seconds`, as often as is cheap.

    A model whose weights are larger than `shard_bytes` is written into several files.
    """

    validations: int = 10
    validate_every_steps: int | None = None
    checkpoint_seconds: float | None = None
    shard_bytes: int = SHARD_BYTES

    def __post_init__(self) -> None:
        require(self.validations, "validations", 1)
        require(1 if self.validate_every_steps is None else self.validate_every_steps, "validate_every_steps", 1)
        require(self.checkpoint_seconds or 0.0, "checkpoint_seconds", 0)
        require(self.shard_bytes, "shard_bytes", 1)


@dataclass(frozen=True)
class ParallelConfig:
    """How a run is spread over processes, whose number is the product of the four axes.

    Each copy of the model (`replicate`) may be divided among several processes (`shard`), its layers may be split
    (`tensor`), or its layers may lie in several processes, one stage after the other (`pipeline`). With `reduce`
    "exact" the number of processes changes no bit. A process that waits longer than `timeout_seconds` for another one
    ends with an error.
    """

    replicate: int | None = None
    shard: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    reduce: Literal["exact", "fast"] | None = None
    activation_checkpointing: bool = False
    compile: bool = False
    timeout_seconds: float = 600.0

    def __post_init__(self) -> None:
        for name in ("replicate", "shard", "tensor", "pipeline"):
            value = getattr(self, name)
            require(1 if value is None else value, name, 1)
        require(self.timeout_seconds, "timeout_seconds", 1, LONGEST_TIMEOUT)
        if self.compile and self.activation_checkpointing:
            raise UserError(
                "training.parallel.compile does not go with activation_checkpointing: dropout masks would be drawn "
                "again when activations are computed again; leave one of the two out"
            )


@dataclass(frozen=True)
class TrainingConfig:
    """All settings of the loop."""

    limit: LimitConfig = field(default_factory=LimitConfig)
    batches: BatchConfig = field(default_factory=BatchConfig)
    machine: MachineConfig = field(default_factory=MachineConfig)
    parallel: ParallelConfig = field(default_factory=ParallelConfig)
    saving: SavingConfig = field(default_factory=SavingConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    label_smoothing: float = 0.1
    ema_decay: float = 0.0
    average_checkpoints: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        require(self.label_smoothing, "label_smoothing", 0, 1)
        require(self.ema_decay, "ema_decay", 0, 1)
        require(self.average_checkpoints, "average_checkpoints", 0)
        require(self.seed, "seed", 0, 2**31)


def seconds(text: str) -> float:
    """`90s`, `30m` or `1h30m` in seconds; a number without a unit could be any of them."""
    match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", text.strip())
    total = 0.0
    if match:
        total = sum(float(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True))
    if re.search(r"\d$", text.strip()):
        raise UserError(f"{text!r} has a number without a unit: write it as 90s, 30m or 1h30m")
    if total <= 0:
        raise UserError(f"{text!r} is not a time: write it as 90s, 30m or 1h30m")
    return total
