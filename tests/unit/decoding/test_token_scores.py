import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.decoding.token_scores import TokenScores, top_tokens
from heedful.text.special_tokens import OWN_TOKENS


def token_scores(logits):
    return TokenScores(logits, np.arange(len(logits)))


def test_rows_that_there_are_take_their_places_among_all():
    logits = torch.randn(3, 131, generator=torch.Generator().manual_seed(3))
    scores = TokenScores(logits, np.array([1, 2, 5]))
    spread = scores.spread(torch.tensor([[1, 2], [3, 4], [5, 6]]), (2, 3), -1)
    assert spread.tolist() == [[-1, -1, 1, 2, 3, 4], [-1, -1, -1, -1, 5, 6]]
    assert [token for token, _ in scores.likeliest(5, 7)] == sorted_tokens(logits[2].tolist(), 7)


def sorted_tokens(row, count):
    return sorted(range(len(row)), key=lambda token: (-row[token], token))[:count]


@given(st.integers(1, 700), st.integers(1, 13), st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 1000]))
def test_top_tokens_are_exact_and_prefer_the_lower_id(size, count, seed, values):
    count = min(count, size)
    logits = np.random.default_rng(seed).integers(-values, values, (3, size), endpoint=True) / 7
    tokens = top_tokens(torch.from_numpy(logits).float(), count)
    assert tokens.tolist() == [sorted_tokens(row, count) for row in logits.astype(np.float32).tolist()]


@pytest.mark.parametrize("size", [7919, 8000])
def test_top_tokens_of_a_large_vocabulary(size):
    logits = torch.randn(11, size, generator=torch.Generator().manual_seed(0)).mul(30).round().div(10)
    for count in (1, 5, 61, 127):
        expected = logits.sort(dim=-1, descending=True, stable=True).indices[:, :count]
        assert torch.equal(top_tokens(logits, count), expected)


def test_forbidden_tokens_come_last():
    logits = torch.zeros(2, 131)
    logits[:, :3] = 9.0
    scores = token_scores(logits)
    scores.forbid(OWN_TOKENS, torch.tensor([False, True]))
    assert top_tokens(scores.logits_AV, 2).tolist() == [[2, 3], [3, 4]]


def test_log_probabilities_are_those_of_the_whole_vocabulary():
    logits = torch.randn(5, 1009, generator=torch.Generator().manual_seed(1)) * 11
    expected = logits.double().log_softmax(-1)
    scores = token_scores(logits.clone())
    scores.forbid(OWN_TOKENS, None)
    tokens = torch.arange(2, 1009).expand(5, -1)
    found = scores.log_probabilities(tokens)
    assert (found - expected[:, 2:]).abs().max() < 1e-5
    assert found.max() <= 0


@pytest.mark.parametrize("size", [13, 8000, 7919])
def test_a_rows_results_do_not_depend_on_other_rows(size):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        logits = torch.randn(331, size, generator=torch.Generator().manual_seed(2)) * 5
        tokens = top_tokens(logits, 5)
        expected = token_scores(logits).log_probabilities(tokens)
        for rows in (1, 2, 5, 7, 35, 67):
            part = logits[11 : 11 + rows].clone()
            assert torch.equal(top_tokens(part, 5), tokens[11 : 11 + rows])
            found = token_scores(part).log_probabilities(tokens[11 : 11 + rows])
            assert torch.equal(found, expected[11 : 11 + rows])
    finally:
        torch.set_num_threads(threads)
