"""What the training loop asks of a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heedful.tasks.validation_signs import Answers

Indices = NDArray[np.integer]


class Batch(Protocol):
    """What a task makes of some examples."""

    @property
    def num_targets(self) -> int:
        """Target tokens, without padding."""

    @property
    def num_real(self) -> int:
        """All tokens, without padding."""

    @property
    def num_tokens(self) -> int:
        """All tokens, with padding."""

    def halves(self) -> list[Self]:
        """The batch in two parts, or unsplit if it is of one example."""


@dataclass(frozen=True)
class Validation:
    """The held-out loss, other scores, some examples to look at, and signs of health.

    `input_gain` is how much higher the loss is with inputs that belong to other answers; `wrong` is the share of wrong
    answers if that is what counts, else None.
    """

    loss: float
    scores: dict[str, float] = field(default_factory=dict)
    examples: list[dict[str, str]] = field(default_factory=list)
    answers: Answers | None = None
    input_gain: float | None = None
    wrong: float | None = None

    @property
    def rank(self) -> list[float]:
        """Lower is better: fewer wrong answers, and a lower loss among equals."""
        return [self.wrong or 0.0, self.loss]


@dataclass(frozen=True)
class LearningSettings:
    """How a task is to be learned."""

    tokens_per_batch: int
    label_smoothing: float
    seed: int


AnyBatch = TypeVar("AnyBatch", bound=Batch)


class Task(Protocol[AnyBatch]):
    """Something to learn, with the model that is to learn it."""

    @property
    def width(self) -> int:
        """The model's width, on which the paper's learning rate depends."""

    @property
    def unit(self) -> str:
        """What `num_targets` counts, in words."""

    @property
    def validation_tokens(self) -> int:
        """About how many tokens a validation computes, to estimate how long the first one will take."""

    @property
    def largest_loss(self) -> float:
        """A loss per target token that only a run that has gone wrong can exceed."""

    def epoch_batches(self, epoch: int) -> Sequence[Indices]:
        """The batches of an epoch: a pure function of its number."""

    def collate(self, indices: Indices) -> AnyBatch:
        """Some examples as tensors."""

    def loss(self, model: Any, batch: AnyBatch) -> tuple[Tensor, Tensor]:
        """The summed loss to train on, and the summed loss to report, of a model on a batch."""

    def validate(self) -> Validation:
        """Measure the model, as it is now, on the held-out examples."""

    def read_examples(self, model: Any) -> Iterator[None]:
        """Let a model of this kind read a few held-out examples, one at a time and without padding."""
