"""What a validation says about a model's health: how alike its answers are, and how much its inputs help it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Answer = TypeVar("Answer", bound=Hashable)
# Reading a few examples with all attention weights kept must not need more memory than training does.
LONGEST_EXAMPLE = 256
EXAMPLES_TO_READ = 4


@dataclass(frozen=True)
class Answers:
    """How many held-out answers there are, the commonest, its share, and the share that the commonest should have."""

    count: int
    commonest: str
    share: float
    expected_share: float


def summarise_answers(found: Sequence[Answer], wanted: Sequence[Answer], name: Callable[[Answer], str]) -> Answers:
    """How alike the answers are, compared with how alike the right ones are."""
    (commonest, times), (_, expected) = (Counter(each).most_common(1)[0] for each in (found, wanted))
    return Answers(len(found), name(commonest), times / len(found), expected / len(wanted))


def unrelated_loss(log_probabilities_C: NDArray[np.float64], labels_N: NDArray[np.integer]) -> float:
    """The mean loss with every label paired with every input, not only with its own.

    `log_probabilities_C` holds the log-probability of each class, summed over the N inputs.
    """
    shares_C = np.bincount(labels_N, minlength=len(log_probabilities_C)) / len(labels_N)
    return float(-(shares_C @ log_probabilities_C) / len(labels_N))
