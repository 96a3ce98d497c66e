import math

import pytest
import torch

from attention_masks import masks
from heedful.errors import UserError
from heedful.layers.attention import Scoring, attend_explicit, attend_fused, attention_weights
from heedful.layers.blockwise_attention import mixed
from heedful.layers.multi_head_attention import MultiHeadAttention, SelfAttention
from heedful.layers.positions import PositionScheme
from heedful.settings.attention import AttentionConfig
from heedful.settings.position_scheme import PositionSizes

B, H, T, S, K, V = 3, 5, 7, 11, 13, 17
MASKS = masks(B, T, S)


def tensors(query_length: int = T, key_length: int = S) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    shapes = [(B, H, query_length, K), (B, H, key_length, K), (B, H, key_length, V)]
    return [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("mask_name", MASKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1 / math.sqrt(K)])
def test_fused_and_explicit_agree_forward_and_backward(mask_name: str, causal: bool, scale: float) -> None:
    mask = MASKS[mask_name]
    outputs, gradients = [], []
    for attend in (attend_fused, attend_explicit):
        inputs = tensors()
        output = attend(*inputs, mask, causal, Scoring(scale), 0.0)
        weights = torch.linspace(-1, 1, output.numel()).view_as(output)
        gradients.append(torch.autograd.grad((output * weights).sum(), inputs))
        outputs.append(output)
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=0)
    for fused, explicit in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, explicit, atol=1e-5, rtol=0)
        assert torch.isfinite(fused).all()


@pytest.mark.parametrize("attend", [attend_fused, attend_explicit])
def test_a_query_without_any_key_gives_zeros_and_finite_gradients(attend) -> None:
    inputs = tensors()
    mask = torch.ones(B, 1, T, S, dtype=torch.bool)
    mask[0, :, 3] = False
    output = attend(*inputs, mask, False, Scoring(0.3), 0.0)
    assert (output[0, :, 3] == 0).all()
    assert (output[0, :, 2] != 0).all()
    for gradient in torch.autograd.grad(output.square().sum(), inputs):
        assert torch.isfinite(gradient).all()


def test_weights_are_the_softmax_of_equation_1() -> None:
    query, key, _ = tensors()
    scores = torch.einsum("bhtk,bhsk->bhts", query, key) / math.sqrt(K)
    expected = scores.exp() / scores.exp().sum(-1, keepdim=True)
    torch.testing.assert_close(attention_weights(query, key, None, False, Scoring(1 / math.sqrt(K))), expected)


def test_weights_sum_to_one_over_the_visible_keys() -> None:
    query, key, _ = tensors(T, T)
    weights = attention_weights(query, key, None, True, Scoring(0.5))
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, T))
    assert (weights.triu(1) == 0).all()


def test_attention_dropout_keeps_the_expected_output() -> None:
    query, key, value = tensors()
    plain = attend_fused(query, key, value, None, False, Scoring(0.3), 0.0)
    torch.manual_seed(3)
    mean = torch.stack([attend_fused(query, key, value, None, False, Scoring(0.3), 0.25) for _ in range(400)]).mean(0)
    assert (mean - plain).abs().max() < 0.35
    assert not torch.equal(mean, plain)


def test_widths_of_keys_and_values_are_free() -> None:
    config = AttentionConfig(num_heads=3, key_width=5, value_width=7)
    attention = SelfAttention(11, config, PositionScheme(PositionSizes(11, 5, 13)))
    assert attention.query_key_value_projection.weight.shape == (3 * (5 + 5 + 7), 11)
    assert attention(torch.randn(2, 13, 11), causal=True).shape == (2, 13, 11)
    cross = MultiHeadAttention(11, config)
    key, value = cross.keys_values(torch.randn(2, 13, 11))
    assert (key.shape, value.shape) == ((2, 3, 13, 5), (2, 3, 13, 7))


def test_the_scale_is_a_setting() -> None:
    scaled = SelfAttention(12, AttentionConfig(num_heads=3), PositionScheme(PositionSizes(12, 4, 7)))
    unscaled = SelfAttention(12, AttentionConfig(num_heads=3, scaled=False), PositionScheme(PositionSizes(12, 4, 7)))
    assert (scaled.scale, unscaled.scale) == (0.5, 1.0)
    unscaled.load_state_dict(scaled.state_dict())
    x = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(4))
    assert not torch.allclose(scaled(x), unscaled(x))


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(UserError, match="cannot be split over 5 heads"):
        SelfAttention(12, AttentionConfig(num_heads=5), PositionScheme(PositionSizes(12, 2, 7)))


@pytest.mark.parametrize("mask_name", MASKS)
@pytest.mark.parametrize("causal", [False, True])
@torch.inference_mode()
def test_additive_attention_is_that_of_plain_loops(mask_name: str, causal: bool) -> None:
    query, key, value = tensors()
    vector = torch.randn(H, K, generator=torch.Generator().manual_seed(3))
    mask = MASKS[mask_name]
    visible = torch.ones(B, 1, T, S, dtype=torch.bool) if mask is None else mask.expand(B, 1, T, S)
    output = attend_fused(query, key, value, mask, causal, Scoring(1.0, vector), 0.0)
    for b, h, t in [(0, 0, 0), (1, 4, 2), (2, 3, 6), (1, 1, 5)]:
        seen = [s for s in range(S) if visible[b, 0, t, s] and (s <= t or not causal)]
        scores = [math.exp(float(vector[h] @ torch.tanh(query[b, h, t] + key[b, h, s]))) for s in seen]
        expected = sum((each * value[b, h, s] for s, each in zip(seen, scores, strict=True)), torch.zeros(V))
        torch.testing.assert_close(output[b, h, t] * max(sum(scores), 1e-9), expected, atol=1e-4, rtol=1e-5)


def test_the_gradient_of_additive_attention_is_that_of_its_output() -> None:
    generator = torch.Generator().manual_seed(4)
    shapes = [(2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), (2, 4)]
    inputs = [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]
    mask = (torch.arange(5) < torch.tensor([5, 2])[:, None])[:, None, None]

    def attend(query, key, value, vector):
        return attend_explicit(query, key, value, mask, True, Scoring(1.0, vector), 0.0)

    assert torch.autograd.gradcheck(attend, inputs)


@pytest.mark.parametrize("width", [5, 8, 26])
def test_a_sentence_is_mixed_alike_to_the_last_bit_in_any_batch(width: int) -> None:
    generator = torch.Generator().manual_seed(5)
    weights, value = torch.rand(11, 1, 3, 40, generator=generator), torch.randn(11, 1, 40, width, generator=generator)
    together = mixed(weights, value)
    for first in range(7):
        rows = slice(first, first + 4)
        assert torch.equal(mixed(weights[rows].clone(), value[rows].clone()), together[rows])
