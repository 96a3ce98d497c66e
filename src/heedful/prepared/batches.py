"""Batches under a token budget, of pairs with nearly equal lengths, in a new random order each epoch."""

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError

Indices = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]


class BucketedBatches:
    """Cuts a corpus into batches whose rows times (longest source + longest target) keep within a budget.

    The lengths are those of the rows that the model sees, so that they count the end token.
    """

    def __init__(self, source_lengths: Lengths, target_lengths: Lengths, tokens_per_batch: int, seed: int) -> None:
        assert len(source_lengths) == len(target_lengths), (len(source_lengths), len(target_lengths))
        if tokens_per_batch < 1:
            raise UserError(f"A batch of {tokens_per_batch} tokens holds nothing: give at least 1.")
        self._sources = source_lengths.astype(np.int64)
        self._targets = target_lengths.astype(np.int64)
        self._budget = tokens_per_batch
        self._seed = seed
        # Target lengths rise; source lengths rise and fall by turns, so that they do not jump from the
        # longest to the shortest where the target length changes.
        span = int(self._sources.max(initial=0)) + 1
        turned = np.where(self._targets % 2 == 0, self._sources, span - 1 - self._sources)
        self._order_keys = self._targets * span + turned

    def epoch(self, epoch: int) -> list[Indices]:
        """The batches of an epoch as arrays of indices: each pair once, a function of seed and epoch."""
        # Raw output of a bit generator, since only that is promised to stay the same in all numpy versions.
        random = np.random.PCG64([self._seed, epoch])
        shuffled = np.argsort(random.random_raw(len(self._order_keys)), kind="stable")
        order = shuffled[np.argsort(self._order_keys[shuffled], kind="stable")]
        batches = np.split(order, self._cuts(order))
        return [batches[i] for i in np.argsort(random.random_raw(len(batches)), kind="stable")] if len(order) else []

    def _cuts(self, order: Indices) -> list[int]:
        """Where new batches start, each taken as large as the budget allows; one pair alone may exceed it."""
        sources, targets = self._sources[order], self._targets[order]
        cuts: list[int] = []
        start = 0
        while start < len(order):
            # The first pair bounds the number of rows, because the longest target only grows from there.
            most = max(1, self._budget // int(sources[start] + targets[start]))
            longest = np.maximum.accumulate(sources[start : start + most]) + targets[start : start + most]
            tokens = longest * np.arange(1, len(longest) + 1)
            start += max(1, int(np.searchsorted(tokens, self._budget, side="right")))
            cuts.append(start)
        return cuts[:-1]
