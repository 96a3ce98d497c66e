"""Corpora in the shares of their weights: of every epoch, and over epochs, whatever their sizes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.prepared.batches import BucketedBatches
from heedful.prepared.mixture import Mixture, check_weights, parse_weights

NAMES = ("a", "b", "c")


def mixture(sizes: list[int], weights: list[float], seed: int = 5) -> Mixture:
    return Mixture(NAMES[: len(sizes)], sizes, weights, seed)


def drawn_pass_by_pass(size: int, draws: int, corpus: int, epoch: int, seed: int) -> list[int]:
    """What an epoch draws from a corpus, by shuffling it again and again and taking one example after the other."""
    passes = -(-(epoch + 1) * draws // size)
    shuffled = [
        example
        for number in range(passes)
        for example in np.argsort(np.random.PCG64([seed, number, corpus, 1]).random_raw(size), kind="stable").tolist()
    ]
    counts = Counter(shuffled[epoch * draws : (epoch + 1) * draws])
    return [counts[example] for example in range(size)]


@given(
    st.lists(st.tuples(st.integers(1, 23), st.sampled_from([0.5, 1.0, 3.0, 7.0])), min_size=2, max_size=3),
    st.integers(0, 11),
    st.integers(0, 2**40),
)
@settings(max_examples=150)
def test_an_epoch_takes_what_shuffling_again_and_again_would(
    corpora: list[tuple[int, float]], epoch: int, seed: int
) -> None:
    sizes, weights = [size for size, _ in corpora], [weight for _, weight in corpora]
    try:
        found = mixture(sizes, weights, seed)
    except UserError:  # too small a share for one example
        assert min(weights) * sum(sizes) / sum(weights) < 1
        return
    assert sum(found.draws) == sum(sizes)
    for draws, weight in zip(found.draws, weights, strict=True):
        assert abs(draws - sum(sizes) * weight / sum(weights)) < 1
    expected = [
        drawn_pass_by_pass(size, draws, corpus, epoch, seed)
        for corpus, (size, draws) in enumerate(zip(sizes, found.draws, strict=True))
    ]
    assert found.times(epoch).tolist() == [times for corpus in expected for times in corpus]


def test_no_example_of_a_corpus_comes_twice_before_all_have_come() -> None:
    found = mixture([101, 13], [1.0, 3.0])
    seen = sum(found.times(epoch) for epoch in range(7))
    for corpus in (seen[:101], seen[101:]):
        assert corpus.max() - corpus.min() <= 1
    assert found.in_words("pair") == "a 25.4% (each pair 0.29 times), b 74.6% (each pair 6.5 times)"


def test_other_seeds_and_epochs_take_other_examples() -> None:
    one, other = mixture([101, 103], [1.0, 3.0], 5), mixture([101, 103], [1.0, 3.0], 6)
    assert one.times(0).tolist() != one.times(1).tolist() != other.times(1).tolist()
    assert one.times(3).tolist() == mixture([101, 103], [1.0, 3.0], 5).times(3).tolist()


def test_the_batches_of_an_epoch_have_every_example_as_often_as_the_mixture_says() -> None:
    rng = np.random.default_rng(1)
    sources, targets = (rng.integers(1, 19, 307).astype(np.int32) for _ in range(2))
    shares = mixture([211, 96], [1.0, 2.0], 7)
    batches = BucketedBatches(sources, targets, 97, 7, shares).epoch(3)
    found = [batch.tolist() for batch in batches]
    assert np.bincount(np.concatenate(found), minlength=307).tolist() == shares.times(3).tolist()
    for batch in found:
        assert len(batch) * (sources[batch].max() + targets[batch].max()) <= 97
    # A batch in the middle is the same whether or not others were made before it.
    again = BucketedBatches(sources, targets, 97, 7, shares).epoch(3)
    assert [again[place].tolist() for place in (17, 5, 11)] == [found[place] for place in (17, 5, 11)]


def test_pairs_that_come_again_are_spread_over_the_batches() -> None:
    lengths = np.full(201, 3, np.int32)
    batches = BucketedBatches(lengths, lengths, 97, 7, mixture([101, 100], [1.0, 9.0])).epoch(0)
    found = [batch.tolist() for batch in batches]
    assert len(set(np.concatenate(found).tolist())) == 120  # 20 of the first corpus, and all of the second
    # Of 81 that come again, a batch of 16 has seldom two alike; side by side they would nearly all be.
    assert sum(len(batch) - len(set(batch)) for batch in found) < 20


@pytest.mark.parametrize(
    ("weights", "names", "expected"),
    [
        ([1.0], ["a"], "there is only one: give --text more than once"),
        ([1.0], ["a", "b"], r"has 1 number, but there are 2 corpora \(a, b\): give one for each --text"),
        ([1.0, 2.0, 3.0], ["a", "b"], "has 3 numbers"),
        ([1.0, 0.0], ["a", "b"], "the weight of b is 0, but must be above 0"),
        ([-2.0, 1.0], ["a", "b"], "the weight of a is -2"),
        ([float("nan"), 1.0], ["a", "b"], "the weight of a is nan"),
        ([1.0, float("inf")], ["a", "b"], "the weight of b is inf"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights: list[float], names: list[str], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        check_weights(weights, names, "--text")


def test_a_weight_that_gives_no_example_is_refused() -> None:
    with pytest.raises(UserError, match=r"the weight of b, 0\.001 of 1\.001, gives it none of the 30 examples"):
        mixture([17, 13], [1.0, 0.001])


def test_weights_are_read_from_a_list() -> None:
    assert parse_weights("3,1") == (3.0, 1.0)
    assert parse_weights(" 0.5, 2e1 ") == (0.5, 20.0)
    for text in ("", "3,", "three,1", "3;1"):
        with pytest.raises(UserError, match="not a list of numbers"):
            parse_weights(text)
