import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.prepared import batches as batches_module
from heedful.prepared.batches import BucketedBatches

LENGTHS = st.lists(st.tuples(st.integers(1, 23), st.integers(1, 23)), max_size=211)


def batches_of(lengths: list[tuple[int, int]], budget: int, seed: int) -> BucketedBatches:
    array = np.array(lengths, np.int32).reshape(-1, 2)
    return BucketedBatches(array[:, 0], array[:, 1], budget, seed)


def lists(batches: Sequence[np.ndarray]) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@given(LENGTHS, st.integers(1, 131), st.integers(0, 2**40), st.integers(0, 97))
@settings(max_examples=200)
@example([], 7, 0, 0)
def test_every_pair_comes_once_and_the_budget_is_kept(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    bucketed = batches_of(lengths, budget, seed)
    batches = lists(bucketed.epoch(epoch))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert batch
        tokens = len(batch) * (max(lengths[i][0] for i in batch) + max(lengths[i][1] for i in batch))
        assert tokens <= budget or len(batch) == 1
    assert lists(batches_of(lengths, budget, seed).epoch(epoch)) == batches
    bucketed.epoch(epoch + 1)
    assert lists(bucketed.epoch(epoch)) == batches


def planned_whole(lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int) -> list[list[int]]:
    """The batches of an epoch by sorting all pairs, and by adding one pair after the other."""
    random = np.random.PCG64([seed, epoch])
    draws = random.random_raw(len(lengths)).tolist()
    span = max((source for source, _ in lengths), default=0)
    order = sorted(
        range(len(lengths)),
        key=lambda i: (lengths[i][1], lengths[i][0] if lengths[i][1] % 2 == 0 else span - lengths[i][0], draws[i], i),
    )
    batches: list[list[int]] = []
    for pair in order:
        grown = [*batches[-1], pair] if batches else [pair]
        tokens = len(grown) * (max(lengths[i][0] for i in grown) + max(lengths[i][1] for i in grown))
        if batches and tokens <= budget:
            batches[-1] = grown
        else:
            batches.append([pair])
    return [batches[place] for place in np.argsort(random.random_raw(len(batches)), kind="stable")]


@given(LENGTHS, st.integers(1, 131), st.integers(0, 2**40), st.integers(0, 97), st.sampled_from([0, 1 << 22]))
@settings(max_examples=200)
def test_a_batch_made_when_it_is_asked_for_is_that_of_the_whole_plan(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int, counted: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches_module, "COUNTED_KEYS", counted)
        found = batches_of(lengths, budget, seed).epoch(epoch)
    whole = planned_whole(lengths, budget, seed, epoch)
    assert lists(found[::-1]) == whole[::-1]
    assert lists(found) == whole and len(found) == len(whole)
    assert lists(batches_of(lengths, budget, seed).epoch(epoch)[3:7]) == whole[3:7]


def padding_share(lengths: list[tuple[int, int]], batches: list[list[int]]) -> float:
    """The share of padding among all positions of some batches, both sides counted."""
    positions = sum(len(b) * (max(lengths[i][0] for i in b) + max(lengths[i][1] for i in b)) for b in batches)
    return 1 - sum(map(sum, lengths)) / positions


def some_lengths(count: int, seed: int) -> list[tuple[int, int]]:
    """Lengths as of real sentences: lognormal, and those of a pair alike."""
    rng = np.random.default_rng(seed)
    sources = np.clip(rng.lognormal(2.6, 0.4, count), 3, 60)
    targets = np.clip(sources * rng.normal(1.05, 0.15, count), 3, 60)
    return list(zip(sources.astype(int).tolist(), targets.astype(int).tolist(), strict=True))


def test_epochs_and_seeds_differ_in_batches_and_in_their_order() -> None:
    lengths = some_lengths(2003, 1)
    first, other_epoch = (lists(batches_of(lengths, 997, 5).epoch(e)) for e in (0, 1))
    other_seed = lists(batches_of(lengths, 997, 6).epoch(0))
    for other in (other_epoch, other_seed):
        assert {frozenset(batch) for batch in other} != {frozenset(batch) for batch in first}
        assert [lengths[batch[0]] for batch in other] != [lengths[batch[0]] for batch in first]


def test_batches_do_not_come_in_order_of_length() -> None:
    lengths = some_lengths(2003, 2)
    longest = [max(lengths[i][1] for i in batch) for batch in lists(batches_of(lengths, 997, 5).epoch(0))]
    rising = sum(a < b for a, b in pairwise(longest))
    assert 0.3 < rising / len(longest) < 0.7


def test_batches_are_full_and_nearly_free_of_padding() -> None:
    lengths = some_lengths(20_011, 3)
    bucketed = batches_of(lengths, 4000, 5)
    batches = bucketed.epoch(0)
    assert padding_share(lengths, lists(batches)) < 0.05
    assert sum(map(sum, lengths)) / (len(batches) * 4000) > 0.9


def test_a_batch_may_fill_its_budget_exactly() -> None:
    batches = batches_of([(3, 2)] * 7, 15, 5).epoch(0)
    assert sorted(len(batch) for batch in batches) == [1, 3, 3]


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    batches = lists(batches_of([(3, 3), (101, 103), (3, 3), (107, 2)], 13, 5).epoch(0))
    assert sorted(map(sorted, batches)) == [[0, 2], [1], [3]]


def test_the_order_is_the_same_on_every_machine() -> None:
    lengths = [(i % 5 + 1, i % 3 + 1) for i in range(17)]
    assert lists(batches_of(lengths, 29, 11).epoch(2)) == [
        [7, 13, 4],
        [15, 0, 10, 16, 1],
        [11, 5],
        [14, 8, 2],
        [9, 3, 12, 6],
    ]


def test_two_hundred_thousand_pairs_are_planned_at_once() -> None:
    bucketed = batches_of(some_lengths(200_003, 4), 4000, 5)
    start = time.process_time()
    bucketed.epoch(0)
    assert time.process_time() - start < 3


def test_an_empty_budget_is_an_error() -> None:
    with pytest.raises(UserError, match="at least 1"):
        batches_of([(3, 3)], 0, 5)
