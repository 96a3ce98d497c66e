"""The measures of claims on attention, on cases whose answer is known."""

import math

import pytest
import torch

from heedful.claims.learning.blocked_attention import attend_in_blocks
from heedful.claims.learning.observed import queries_and_keys, weights_of_layers
from heedful.claims.measured import depth, head_roles, heads, masking, permutation, saturation, scorings, variance
from heedful.layers.multi_head_attention import SelfAttention
from heedful.layers.stacks import Encoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.stack import StackConfig


def small_stack(positions: str, layers: int = 2) -> Encoder:
    torch.manual_seed(3)
    return Encoder(16, StackConfig(layers, "pre", 0.0, AttentionConfig(2)), positions, 11).eval()


def test_variance_of_known_products() -> None:
    # The products are 1 . 1 + 1 . 1 = 2 and 1 . -1 + 1 . -1 = -2: a variance of 8 with one degree of freedom.
    query, key = torch.ones(2, 2), torch.tensor([[1.0, 1.0], [-1.0, -1.0]])
    assert variance.product_variance(query, key) == pytest.approx(8.0)


def test_variance_of_dependent_components_is_not_d_k() -> None:
    one = torch.randn(50_000, 1, generator=torch.Generator().manual_seed(1))
    other = torch.randn(50_000, 1, generator=torch.Generator().manual_seed(2))
    # All 7 components are the same: the product is 7 a b, whose variance is 49, not 7.
    own, at_unit_variance = variance.head_variances(3 * one.expand(-1, 7), other.expand(-1, 7))
    assert own == pytest.approx(9 * 49 / 7, rel=0.05) and at_unit_variance == pytest.approx(49 / 7, rel=0.05)


@pytest.mark.parametrize(
    ("exponent", "scaled", "trained", "verdict"),
    [
        (1.0, [1.0, 1.01], [1.2, 0.9], "holds"),
        (1.0, [1.0, 1.01], [9.0, 7.0], "holds in part"),
        (1.4, [1.0, 1.01], [1.0], "does not hold at this size"),
    ],
)
def test_verdicts_on_the_variance(exponent: float, scaled: list[float], trained: list[float], verdict: str) -> None:
    assert variance.judge(exponent, scaled, trained)[0] == verdict


def test_jacobian_norm_is_that_of_the_matrix() -> None:
    scores = torch.tensor([[0.3, -1.0, 2.0, 0.0, 0.7], [0.0, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    written_out = torch.stack([torch.diag(p) - torch.outer(p, p) for p in scores.softmax(-1)])
    assert torch.allclose(saturation.jacobian_norm(scores), written_out.flatten(1).norm(dim=1), atol=1e-12)
    # Of n equal scores it is sqrt(n - 1) / n; of one that towers over all others it is 0.
    assert float(saturation.jacobian_norm(scores)[1]) == pytest.approx(math.sqrt(4) / 5)
    assert float(saturation.jacobian_norm(torch.tensor([[100.0, 0.0, 0.0]]))) == pytest.approx(0.0, abs=1e-6)


def test_a_stack_without_positions_is_equivariant_and_one_with_them_is_not() -> None:
    x_BTD, order = torch.randn(3, 11, 16), torch.randperm(11)
    assert permutation.equivariance_error(small_stack("none"), x_BTD, order) < 1e-6
    assert permutation.equivariance_error(small_stack("sinusoidal"), x_BTD, order) > 1e-2
    assert permutation.equivariance_error(small_stack("sinusoidal"), x_BTD, torch.arange(11)) == 0.0


def test_left_neighbours() -> None:
    ids, left = permutation.left_neighbours((1, 2))
    assert torch.equal(left[:, 1:], ids[:, :-1]) and torch.equal(left[:, 0], ids[:, 0])


def test_gradients_to_the_future_are_zero_with_the_mask_alone() -> None:
    stack, x_1TD = small_stack("rotary"), torch.randn(1, 7, 16)
    future, past = masking.gradients_by_side(stack, x_1TD, causal=True)
    assert future == 0.0 and past > 0
    assert masking.gradients_by_side(stack, x_1TD, causal=False)[0] > 0


def test_a_leak_is_told() -> None:
    honest = {"mask": [2.0], "no mask": [5.0]}
    assert masking.judge([0.0], [0.1], honest)[0] == "holds"
    assert masking.judge([1e-9], [0.1], honest)[0] == "does not hold at this size"


def test_a_planted_positional_head_is_found() -> None:
    weights_BTS = torch.full((2, 7, 7), 0.01)
    rows = torch.arange(2, 7)
    weights_BTS[:, rows, rows - 2] = 0.9
    share, distance = head_roles.positional_share(weights_BTS, torch.ones(2, 7, dtype=torch.bool))
    assert distance == -2 and share == pytest.approx(0.9)


def test_shares_count_real_queries_alone() -> None:
    weights_BTS = torch.tensor([[[0.7, 0.3], [0.1, 0.9]]])
    first = torch.tensor([[True, False]])
    assert head_roles.share_on(weights_BTS, first, torch.tensor([[True, False]])) == pytest.approx(0.7)
    assert head_roles.share_on(weights_BTS, first, torch.tensor([[True, True]])) == pytest.approx(0.4)


def test_roles_are_named_by_their_share() -> None:
    assert head_roles.Role(0.9, -1, 0.1, 0.2).name == "positional"
    assert head_roles.Role(0.6, 0, 0.8, 0.2).name == "aligns words"
    assert head_roles.Role(0.3, 0, 0.2, 0.3).name == "none of these"


def test_bytes_kept_for_the_backward_pass() -> None:
    x, y = torch.randn(5, 7, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    assert scorings.kept_bytes(lambda: x * y) == 2 * 4 * 35
    assert scorings.kept_bytes(lambda: x + y) == 0


def test_additive_scores_written_out_keep_a_number_for_each_pair_and_component() -> None:
    calls = scorings.score_functions(8)
    pairs = scorings.ROWS * scorings.HEADS * scorings.LENGTH**2
    assert scorings.kept_bytes(calls["additive, written out"]) >= 4 * pairs * 8
    assert scorings.kept_bytes(calls["additive"]) < 4 * pairs


def test_verdicts_on_heads() -> None:
    by_width = {1: [3.0, 3.1], 16: [2.0, 2.1]}
    assert heads.judge({1: [2.5], 4: [2.0], 32: [2.3]}, by_width)[0] == "holds"
    assert heads.judge({1: [1.5], 4: [2.0], 32: [2.3]}, by_width)[0] == "holds in part"
    # The number of heads that is compared is not chosen by its result.
    assert heads.judge({1: [2.0], 4: [2.0], 8: [1.7], 32: [2.0]}, by_width)[0] == "holds in part"
    assert heads.judge({1: [2.0], 4: [2.0]}, {1: [2.0], 16: [2.0]})[0] == "does not hold at this size"


def test_attention_in_blocks_is_that_of_a_window() -> None:
    torch.manual_seed(1)
    layer = SelfAttention(20, AttentionConfig(4), window=5)
    x_BTD = torch.randn(3, 35, 20)
    for causal in (False, True):
        assert torch.allclose(attend_in_blocks(layer, x_BTD, 5, causal=causal), layer(x_BTD, causal=causal), atol=1e-6)


def test_what_goes_through_attention_is_seen_as_it_is() -> None:
    stack, x_BTD = small_stack("none", layers=3), torch.randn(2, 7, 16)
    (query, key), *others = queries_and_keys(stack, x_BTD)
    assert len(others) == 2 and query.shape == key.shape == (2, 2, 7, 8)
    scores = query @ key.transpose(-1, -2) / math.sqrt(8)
    assert torch.allclose(weights_of_layers(stack, x_BTD)[0], scores.softmax(-1), atol=1e-6)


def test_gradients_of_residual_stacks_stay_and_those_of_plain_ones_vanish() -> None:
    kept = depth.first_to_last(depth.gradients_by_layer("pre-norm", 24, 1))
    lost = depth.first_to_last(depth.gradients_by_layer("neither", 24, 1))
    assert 0.5 < kept < 2 and lost < 1e-6
    assert depth.first_to_last([2.0, 3.0, 4.0]) == 0.5
    assert depth.shown_size(math.nan) == depth.shown_size(math.inf) == depth.LARGEST


def test_what_is_never_normalised_begins_as_quietly_as_before_a_norm() -> None:
    for new in (depth.new_stack, depth.new_model):
        pre, alone = (new(kind, 3, 1) for kind in ("pre-norm", "residual, no norm"))
        for one, other in zip(pre.blocks, alone.blocks, strict=True):
            for first, second in zip(one.added_by, other.added_by, strict=True):
                assert torch.equal(first.weight, second.weight)
    # Embeddings begin with a variance of 1.
    ids = torch.arange(96)[None]
    assert float(alone.embedding(ids, torch.arange(96)).detach().std()) == pytest.approx(1.0, rel=0.05)


def test_residuals_can_be_taken_away() -> None:
    stack = Encoder(16, StackConfig(1, "post", 0.0, AttentionConfig(2)), "none", 7)
    depth.change_residuals(stack, "neither", 16)
    x_BTD = torch.randn(2, 7, 16)
    block = next(iter(stack.blocks))
    assert torch.allclose(stack(x_BTD), block.feed_forward(block.attention(x_BTD)), atol=1e-6)
