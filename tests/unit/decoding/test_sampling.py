from collections import Counter

import numpy as np
import pytest
import torch

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.decoding.sampling import Sampler, uniform

SIZE = 211


def logits_row(size=SIZE, seed=0):
    row = torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 2
    row[:2] = -torch.inf
    return row


def shares(options, row, rows=5003):
    """How often each token is drawn over an even grid of uniform numbers: nearly exact shares."""
    grid = (np.arange(rows) + 0.5) / rows
    drawn = Sampler(options, 1).draw(row.expand(rows, -1), grid)
    return np.bincount(drawn.numpy(), minlength=len(row)) / rows


@pytest.mark.parametrize("size", [5, 64, 211, 1009])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
def test_tokens_are_drawn_by_their_probability(size, temperature):
    row = logits_row(size)
    found = shares(SamplingOptions(temperature), row, rows=3001)
    assert np.abs(found - (row.double() / temperature).softmax(-1).numpy()).max() < 1.1 / 3001


@pytest.mark.parametrize("top_k", [1, 2, 7, 199, SIZE, 10_000])
def test_top_k_draws_from_the_likeliest(top_k):
    row = logits_row().double()
    kept = row.topk(min(top_k, SIZE)).indices
    expected = torch.zeros(SIZE, dtype=torch.float64)
    expected[kept] = (row[kept] / 0.7).softmax(-1)
    found = shares(SamplingOptions(0.7, top_k=top_k), row.float())
    assert np.abs(found - expected.numpy()).max() < 3e-4


@pytest.mark.parametrize("top_p", [0.001, 0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("top_k", [None, 5, 150])
def test_top_p_draws_from_the_smallest_set_that_makes_it_up(top_p, top_k):
    row = logits_row().double()
    order = row.sort(descending=True).indices[:top_k]
    probabilities = (row[order] / 1.7).softmax(-1)
    count = int((probabilities.cumsum(0) - probabilities < top_p).sum())
    expected = torch.zeros(SIZE, dtype=torch.float64)
    expected[order[:count]] = probabilities[:count] / probabilities[:count].sum()
    found = shares(SamplingOptions(1.7, top_k=top_k, top_p=top_p), row.float())
    assert np.abs(found - expected.numpy()).max() < 3e-4


@pytest.mark.parametrize(
    "options", [SamplingOptions(), SamplingOptions(0.5, top_k=7), SamplingOptions(2.0, top_p=0.95)]
)
def test_a_draw_does_not_depend_on_other_rows(options):
    logits = torch.stack([logits_row(1009, seed) for seed in range(71)])
    random = np.random.default_rng(0).random(71)
    sampler = Sampler(options, 1)
    together = sampler.draw(logits, random)
    alone = [int(sampler.draw(logits[n : n + 1], random[n : n + 1])) for n in range(71)]
    assert together.tolist() == alone


@pytest.mark.parametrize("options", [SamplingOptions(), SamplingOptions(top_k=3), SamplingOptions(top_p=0.9)])
def test_the_ends_of_the_unit_interval_stay_among_the_tokens(options):
    row = torch.full((2, 331), -torch.inf)
    row[:, [5, 7, 300]] = torch.tensor([0.5, 0.1, 0.0])
    drawn = Sampler(options, 1).draw(row, np.array([0.0, 1.0 - 2.0**-52]))
    assert drawn.tolist() == [5, 300]


def test_random_numbers_are_even_and_belong_to_their_place():
    index, sample, position = np.arange(31)[:, None, None], np.arange(11)[:, None], np.arange(37)
    numbers = uniform(0, index, sample, position)
    assert numbers.shape == (31, 11, 37)
    assert len(np.unique(numbers)) == numbers.size
    assert uniform(0, np.array([23]), np.array([5]), np.array([29])) == numbers[23, 5, 29]
    assert not np.isin(uniform(1, index, sample, position), numbers).any()
    counts = np.histogram(numbers, 16, (0, 1))[0]
    assert ((counts - numbers.size / 16) ** 2).sum() / (numbers.size / 16) < 37.7  # chi-square, 15 degrees, 0.1 %
    for axis in range(3):
        ahead, behind = np.delete(numbers, 0, axis), np.delete(numbers, -1, axis)
        assert abs(np.corrcoef(ahead.ravel(), behind.ravel())[0, 1]) < 0.04


def sample(model, requests, options, max_sentences=5, **settings):
    results = decode(model, requests, DecodingOptions(sampling=options, **settings), max_sentences)
    return {result.index: result.hypotheses for result in results}


def test_first_tokens_of_samples_follow_the_model(table_model):
    model, count = table_model(13, spread=1.0), 3000
    results = sample(
        model, [Request(n, (3, 5)) for n in range(count)], SamplingOptions(seed=7), 61, min_length=0, max_length=1
    )
    found = Counter(h[0].tokens[0] if h[0].tokens else 2 for h in results.values())
    probabilities = model.log_probabilities((3, 5), ())[2:].exp()
    expected = count * (probabilities / probabilities.sum()).numpy()
    statistic = sum((found[token + 2] - wanted) ** 2 / wanted for token, wanted in enumerate(expected))
    assert statistic < 29.6  # chi-square, 10 degrees of freedom, 0.1 %


def test_samples_are_reproducible_and_differ_by_seed_request_and_number(table_model):
    model = table_model(101, end_bias=1.0)
    requests = [Request(n, (3, 5)) for n in range(7)]
    first = sample(model, requests, SamplingOptions(seed=3), nbest=5)
    assert sample(model, requests[::-1], SamplingOptions(seed=3), 2, nbest=5) == first
    assert sample(model, requests[4:5], SamplingOptions(seed=3), nbest=5) == {4: first[4]}
    assert sample(model, requests, SamplingOptions(seed=4), nbest=5) != first
    texts = [tuple(h.tokens) for hypotheses in first.values() for h in hypotheses]
    assert len(set(texts)) > 25


def test_samples_come_in_the_order_of_their_numbers(table_model):
    model = table_model(101, end_bias=1.0)
    requests = [Request(n, (3, 5)) for n in range(7)]
    few, more = (sample(model, requests, SamplingOptions(seed=3), nbest=count) for count in (3, 7))
    assert few == {index: hypotheses[:3] for index, hypotheses in more.items()}


def test_sampled_scores_are_the_models_own(table_model):
    model = table_model(31, end_bias=1.0)
    for hypotheses in sample(
        model, [Request(0, (4, 9))], SamplingOptions(0.4, top_k=9), nbest=7, length_penalty=0.0
    ).values():
        assert len(hypotheses) == 7
        for h in hypotheses:
            scored = h.tokens + [2] * h.finished
            scores = [float(model.log_probabilities((4, 9), scored[:n])[token]) for n, token in enumerate(scored)]
            assert h.token_scores == pytest.approx(scores, abs=1e-5)
            assert h.score == pytest.approx(sum(scores), abs=1e-4)


def test_drawing_from_the_one_likeliest_is_greedy(table_model):
    model = table_model(31)
    requests = [Request(n, (3 + n, 5)) for n in range(11)]
    greedy = {result.index: result.hypotheses for result in decode(model, requests, DecodingOptions(beam=1), 3)}
    assert sample(model, requests, SamplingOptions(5.0, top_k=1)) == greedy


def test_samples_keep_to_prefix_and_lengths(table_model):
    results = sample(
        table_model(31, end_bias=4.0),
        [Request(n, (3, 4), (9, 8)[: n % 3]) for n in range(23)],
        SamplingOptions(seed=1),
        nbest=3,
        min_length=4,
        max_length=6,
    )
    for index, hypotheses in results.items():
        assert len(hypotheses) == 3
        for h in hypotheses:
            assert tuple(h.tokens[: index % 3]) == (9, 8)[: index % 3]
            assert 4 <= len(h.tokens) <= 6
            assert min(h.tokens) > 2
