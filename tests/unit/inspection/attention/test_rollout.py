"""Rollout, compared with a sum over all paths through the layers."""

from itertools import product

import numpy as np
import pytest

from heedful.inspection.attention.maps import AttentionMap
from heedful.inspection.attention.rollout import rollouts

H, T, S = 2, 3, 5


def layers(kind: str, count: int, queries: int, keys: int, seed: int) -> list[AttentionMap]:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(keys), (count, H, queries)).astype(np.float32)
    return [AttentionMap(kind, number, "q", "k", weights[number]) for number in range(count)]


def test_a_stack_is_the_sum_over_all_paths() -> None:
    maps = layers("encoder", 3, T, T, 1)
    ((found),) = rollouts(maps)
    mixes = [0.5 * np.eye(T) + 0.5 * each.weights.mean(0, dtype=float) for each in maps]
    expected = np.zeros((T, T))
    for start, one, two, end in product(range(T), repeat=4):  # from the top to the input
        expected[start, end] += mixes[2][start, one] * mixes[1][one, two] * mixes[0][two, end]
    np.testing.assert_allclose(found.weights, expected, atol=1e-12)
    np.testing.assert_allclose(found.weights.sum(-1), 1.0, atol=1e-6)


def test_across_is_a_stack_over_target_and_source_together() -> None:
    encoder, decoder, cross = layers("encoder", 2, S, S, 2), layers("decoder", 3, T, T, 3), layers("cross", 3, T, S, 4)
    found = {each.kind: each.weights for each in rollouts([*encoder, *decoder, *cross])}
    state = np.concatenate([np.zeros((T, S)), np.eye(T)], axis=1)  # shares of source tokens, then of target tokens
    source = np.concatenate([found["encoder"], np.zeros((S, T))], axis=1)
    for within, to_source in zip(decoder, cross, strict=True):
        state = 0.5 * state + 0.5 * within.weights.mean(0, dtype=float) @ state
        state = 0.5 * state + 0.5 * to_source.weights.mean(0, dtype=float) @ source
    np.testing.assert_allclose(state.sum(-1), 1.0, atol=1e-6)
    np.testing.assert_allclose(found["cross"], state[:, :S], atol=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
def test_queries_take_the_contents_as_they_enter_each_layer(depth: int) -> None:
    contents, queries = layers("content", depth - 1, T, T, 5), layers("query", depth, T, T, 6)
    found = {each.kind: each.weights for each in rollouts([*contents, *queries])}["query"]
    entering, state = np.eye(T), np.zeros((T, T))
    for number, each in enumerate(queries):
        state = 0.5 * state + 0.5 * each.weights.mean(0, dtype=float) @ entering
        if number < depth - 1:
            entering = 0.5 * entering + 0.5 * contents[number].weights.mean(0, dtype=float) @ entering
    np.testing.assert_allclose(found, state, atol=1e-12)
    np.testing.assert_allclose(found.sum(-1), 1 - 0.5**depth, atol=1e-6)


def test_a_recurrent_model_has_none() -> None:
    assert rollouts(layers("cross", 1, T, S, 7)) == []
