"""Corpora that a user wants mixed in given proportions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.errors import UserError
from heedful.prepared.mixture import Mixture, check_weights
from heedful.tasks.job import Choice
from heedful.text.text_files import expand_files


@dataclass(frozen=True)
class MixedCorpora:
    """Corpora, by the names or patterns given for them with an option, and their weights."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    option: str

    def __post_init__(self) -> None:
        check_weights(self.weights, self.names, self.option)

    def file_counts(self, counterparts: Sequence[str] = ()) -> tuple[int, ...]:
        """How many files each corpus has; it must have as many counterparts, if there are any."""
        counts = tuple(len(expand_files([name])) for name in self.names)
        for name, other, count in zip(self.names, counterparts, counts, strict=False):
            if len(expand_files([other])) != count:
                raise UserError(
                    f"{name} stands for {count} files, but {other} for {len(expand_files([other]))}: with --weights "
                    "each --source goes with its --target"
                )
        return counts

    def mixture(self, sizes: Sequence[int], seed: int = 0) -> Mixture:
        """How often an epoch has each example, for corpora of these sizes."""
        return Mixture(self.names, sizes, self.weights, seed)


def mixture_choice(mixture: Mixture | None, unit: str) -> list[Choice]:
    """A mixture as the table of a run shows it."""
    if mixture is None:
        return []
    weights = ", ".join(f"{weight:g}" for weight in mixture.weights)
    return [Choice("mixture of an epoch", mixture.in_words(unit), f"by the weights {weights}")]
