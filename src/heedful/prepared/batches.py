"""Batches under a token budget, of pairs with nearly equal lengths, in a new random order each epoch."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.prepared.mixture import Mixture

Indices = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.int32]
# Keys below this are counted in a table, not sorted.
COUNTED_KEYS = 1 << 22


class BucketedBatches:
    """Cuts a corpus into batches whose rows times (longest source + longest target) keep within a budget.

    The lengths are those of the rows that the model sees, including the end token. With a mixture, an epoch has each
    pair as often as that says; without one, once.
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        tokens_per_batch: int,
        seed: int,
        mixture: Mixture | None = None,
    ) -> None:
        assert len(source_lengths) == len(target_lengths), (len(source_lengths), len(target_lengths))
        if tokens_per_batch < 1:
            raise UserError(f"a batch of {tokens_per_batch} tokens holds nothing: give at least 1")
        self._budget, self._seed, self._mixture = tokens_per_batch, seed, mixture
        # Target lengths rise; source lengths alternately rise and fall, so that they do not jump from the
        # longest to the shortest where the target length changes.
        span = int(source_lengths.max(initial=0)) + 1
        turned = np.where(target_lengths % 2 == 0, source_lengths, span - 1 - source_lengths)
        keys, groups = _distinct(target_lengths * np.int64(span) + turned)
        # Pairs of the same two lengths, each group in the order of the corpus, one group after another.
        by_length = np.argsort(groups, kind="stable")
        self._by_length = by_length.astype(np.int32 if len(by_length) < 2**31 else np.int64)
        self._counts = np.bincount(groups, minlength=len(keys))
        targets, turned = np.divmod(keys, span)
        self._targets, self._sources = targets.tolist(), np.where(targets % 2 == 0, turned, span - 1 - turned).tolist()

    def epoch(self, epoch: int, numbered_from: int = 0) -> "EpochBatches":
        """The batches of an epoch, a function of seed and epoch, as arrays of indices from `numbered_from` on."""
        # Raw output of a bit generator, since only that is promised to stay the same in all numpy versions.
        random = np.random.PCG64([self._seed, epoch])
        order, counts, mixture = self._by_length, self._counts, self._mixture
        if mixture:
            times = mixture.times(epoch)[order]
            counts = np.add.reduceat(times, np.cumsum(counts) - counts)
            order = np.repeat(order, times)
        draws = random.random_raw(len(order))
        cuts = self._cuts(counts.tolist())
        batches = np.argsort(random.random_raw(len(cuts) - 1), kind="stable")
        # With a mixture a pair may come again: then each draw belongs to a place, not to a pair.
        shuffled = _ShuffledGroups(order if mixture else order.copy(), counts, draws, by_pair=mixture is None)
        return EpochBatches(shuffled, np.array(cuts), batches, numbered_from)

    def _cuts(self, counts: Sequence[int]) -> list[int]:
        """Where batches begin and end, each taken as large as the budget allows; one pair alone may exceed it."""
        cuts, end, rows, longest = [0], 0, 0, 0
        for source, target, count in zip(self._sources, self._targets, counts, strict=True):
            if not count:
                continue
            # The longest target of the open batch is that of this group, because targets only grow.
            longest = max(longest, source)
            fitting = min(count, max(0, self._budget // (longest + target) - rows)) if rows else 0
            rows, end, left = rows + fitting, end + fitting, count - fitting
            if not left:
                continue
            if rows:
                cuts.append(end)
            most = max(1, self._budget // (source + target))
            cuts.extend(range(end + most, end + left, most))
            end, rows, longest = end + left, (left - 1) % most + 1, source
        return [*cuts, end] if end else cuts


class _ShuffledGroups:
    """Pairs, one group of equal lengths after another; a group is shuffled when it is first needed."""

    def __init__(
        self, order: npt.NDArray[Any], counts: npt.NDArray[Any], draws: npt.NDArray[np.uint64], by_pair: bool
    ) -> None:
        self._order, self._draws, self._by_pair = order, draws, by_pair
        self._ends = np.cumsum(counts)
        self._is_shuffled = np.zeros(len(counts), np.bool_)

    def part(self, begin: int, end: int) -> Indices:
        """The pairs at some places."""
        first, last = np.searchsorted(self._ends, (begin, end - 1), side="right").tolist()
        for group in range(first, last + 1):
            if not self._is_shuffled[group]:
                self._shuffle(int(self._ends[group - 1]) if group else 0, int(self._ends[group]))
                self._is_shuffled[group] = True
        return self._order[begin:end].astype(np.int64)

    def _shuffle(self, begin: int, end: int) -> None:
        pairs = self._order[begin:end]
        draws = self._draws[pairs] if self._by_pair else self._draws[begin:end]
        self._order[begin:end] = pairs[np.argsort(draws, kind="stable")]


class _Batches(Sequence[Indices]):
    """Batches that are made on demand, in any order."""

    @abstractmethod
    def _batch(self, place: int) -> Indices:
        """The batch at a place."""

    @overload
    def __getitem__(self, place: int) -> Indices: ...
    @overload
    def __getitem__(self, place: slice) -> list[Indices]: ...
    def __getitem__(self, place: int | slice) -> Indices | list[Indices]:
        places = range(len(self))[place]
        return self._batch(places) if isinstance(places, int) else [self._batch(each) for each in places]


class EpochBatches(_Batches):
    """The batches of an epoch of pairs."""

    def __init__(self, pairs: _ShuffledGroups, cuts: Indices, batches: Indices, numbered_from: int) -> None:
        self._pairs, self._cuts, self._batches, self._numbered_from = pairs, cuts, batches, numbered_from

    def __len__(self) -> int:
        return len(self._batches)

    def _batch(self, place: int) -> Indices:
        batch = self._batches[place]
        return self._pairs.part(int(self._cuts[batch]), int(self._cuts[batch + 1])) + self._numbered_from


class EvenBatches(_Batches):
    """Examples in a given order, in batches of `size`; the last one may have fewer."""

    def __init__(self, order: Indices, size: int) -> None:
        self._order, self._size = order, size

    def __len__(self) -> int:
        return -(-len(self._order) // self._size)

    def _batch(self, place: int) -> Indices:
        return self._order[place * self._size : (place + 1) * self._size]


def _distinct(keys: Indices) -> tuple[Indices, npt.NDArray[Any]]:
    """The distinct keys in order, and the place of each key among them, in the smallest type that holds it."""
    if keys.max(initial=0) < COUNTED_KEYS:
        occurs = np.bincount(keys) > 0
        distinct = np.flatnonzero(occurs)
        places = (np.cumsum(occurs) - 1).astype(np.min_scalar_type(len(distinct)))  # 16 bits are sorted in linear time
        return distinct, places[keys]
    return np.unique(keys, return_inverse=True)
