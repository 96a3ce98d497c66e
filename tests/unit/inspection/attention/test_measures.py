import math

import numpy as np
import pytest

from heedful.inspection.attention.maps import Positions
from heedful.inspection.attention.weights import entropy, mean_distance

H, Q, K = 3, 5, 7


def random_weights(queries: int = Q, keys: int = K) -> np.ndarray:
    scores = np.random.default_rng(1).normal(size=(H, queries, keys))
    return (np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)).astype(np.float32)


def test_entropy_lies_between_one_key_and_all_alike() -> None:
    one = np.zeros((1, Q, K), np.float32)
    one[0, :, 3] = 1
    alike = np.full((1, Q, K), 1 / K, np.float32)
    assert entropy(one)[0] == 0
    assert entropy(alike)[0] == pytest.approx(math.log(K), abs=1e-6)
    weights = random_weights()
    expected = [np.mean([-sum(w * math.log(w) for w in row) for row in head]) for head in weights.astype(float)]
    np.testing.assert_allclose(entropy(weights), expected, atol=1e-6)


def test_distance_along_a_text() -> None:
    weights = random_weights()
    queries, keys = Positions.in_a_row(["q"] * Q, first=1), Positions.in_a_row(["k"] * K)
    expected = [
        np.mean([sum(head[q, k] * abs(q + 1 - k) for k in range(K)) for q in range(Q)])
        for head in weights.astype(float)
    ]
    np.testing.assert_allclose(mean_distance(weights, queries, keys), expected, atol=1e-6)


def test_the_diagonal_of_cross_attention_is_no_distance() -> None:
    weights = np.zeros((1, 3, 5), np.float32)
    weights[0, [0, 1, 2], [0, 2, 4]] = 1
    target, source = Positions.along(["a", "b", "c"], 5), Positions.in_a_row(["k"] * 5)
    assert mean_distance(weights, target, source)[0] == 0
    assert mean_distance(weights[:, :, ::-1], target, source)[0] == pytest.approx((4 + 0 + 4) / 3)


@pytest.mark.parametrize("class_token", [True, False])
def test_distance_on_a_grid_leaves_the_class_token_out(class_token: bool) -> None:
    grid = Positions.on_a_grid(2, 3, class_token)
    assert grid.labels[int(class_token) :] == ["1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]
    weights = random_weights(len(grid.labels), len(grid.labels))
    patches = weights[:, int(class_token) :, int(class_token) :].astype(float)
    expected = []
    for head in patches:
        far = [
            sum(head[q, k] * math.dist(divmod(q, 3), divmod(k, 3)) for k in range(6)) / head[q].sum() for q in range(6)
        ]
        expected.append(np.mean(far))
    np.testing.assert_allclose(mean_distance(weights, grid, grid), expected, atol=1e-6)
