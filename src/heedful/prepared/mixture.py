"""Several corpora in proportion to weights: how often an epoch has each example, by seed and epoch alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from heedful.errors import UserError

if TYPE_CHECKING:  # the command line reads weights without waiting for numpy
    import numpy as np
    import numpy.typing as npt

LARGEST_WEIGHT = 1e6


def parse_weights(text: str) -> tuple[float, ...]:
    """The numbers in a list such as 3,1."""
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise UserError(f"{text!r} is not a list of numbers, as in 3,1") from None


def check_weights(weights: Sequence[float], names: Sequence[str], option: str) -> None:
    """Raise a UserError for weights that do not match the corpora of these names, which an option gave."""
    if len(names) < 2:
        raise UserError(f"--weights mixes several corpora, but there is only one: give {option} more than once")
    if len(weights) != len(names):
        raise UserError(
            f"--weights has {len(weights)} number{'s' * (len(weights) != 1)}, but there are {len(names)} corpora "
            f"({', '.join(names[:3])}{', ...' * (len(names) > 3)}): give one for each {option}"
        )
    for weight, name in zip(weights, names, strict=True):
        if not (0 < weight <= LARGEST_WEIGHT):
            raise UserError(
                f"the weight of {name} is {weight:g}, but must be above 0 and at most {LARGEST_WEIGHT:g}: leave a "
                "corpus out to give it none"
            )


class Mixture:
    """How often each example of several corpora occurs in an epoch.

    An epoch has as many examples as all corpora together, and each corpus gives the share of them that its weight is of
    all weights. It gives them in passes: every example of a corpus comes once before any comes again, even across
    epochs, in a different order in each pass.
    """

    def __init__(self, names: Sequence[str], sizes: Sequence[int], weights: Sequence[float], seed: int = 0) -> None:
        self.names, self.sizes, self.weights, self._seed = tuple(names), tuple(sizes), tuple(weights), seed
        self.draws = _apportioned(sum(sizes), weights)
        for name, draws, weight in zip(names, self.draws, weights, strict=True):
            if not draws:
                raise UserError(
                    f"the weight of {name}, {weight:g} of {sum(weights):g}, gives it none of the {sum(sizes):,} "
                    "examples of an epoch: give it a larger one, or leave it out"
                )

    def times(self, epoch: int) -> npt.NDArray[np.int64]:
        """How often each example occurs in an epoch, one corpus after another."""
        import numpy as np

        return np.concatenate(
            [
                self._passed(corpus, (epoch + 1) * draws) - self._passed(corpus, epoch * draws)
                for corpus, draws in enumerate(self.draws)
            ]
        )

    def _passed(self, corpus: int, draws: int) -> npt.NDArray[np.int64]:
        """How often each example of a corpus is among its first draws."""
        import numpy as np

        size = self.sizes[corpus]
        whole, rest = divmod(draws, size)
        passed = np.full(size, whole, np.int64)
        if rest:
            # The last number keeps these draws apart from those that put batches in order.
            random = np.random.PCG64([self._seed, whole, corpus, 1]).random_raw(size)
            last = np.partition(random, rest - 1)[rest - 1]
            passed += random < last
            passed[np.flatnonzero(random == last)[: draws - int(passed.sum())]] += 1
        return passed

    def in_words(self, unit: str) -> str:
        """The share of each corpus, and how often an epoch has each of its examples."""
        shares = (
            f"{name} {draws / sum(self.draws):.1%} (each {unit} {draws / size:.2g} times)"
            for name, draws, size in zip(self.names, self.draws, self.sizes, strict=True)
        )
        return ", ".join(shares)


def _apportioned(total: int, weights: Sequence[float]) -> list[int]:
    """A number of examples in proportion to weights, whole and with the right sum: the largest remainders round up."""
    exact = [total * weight / math.fsum(weights) for weight in weights]
    whole = [math.floor(each) for each in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: (whole[place] - exact[place], place))
    for place in by_remainder[: total - sum(whole)]:
        whole[place] += 1
    return whole
