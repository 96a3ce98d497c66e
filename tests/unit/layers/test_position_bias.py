"""Biases on the scores: ALiBi and T5's buckets, against formulas written once more and the authors' own."""

import math

import pytest
import torch

from attention_masks import masks
from heedful.errors import UserError
from heedful.layers.attention import Scoring, attend_explicit, attend_fused
from heedful.layers.blockwise_attention import attend_in_step
from heedful.layers.masks import added_to_scores
from heedful.layers.multi_head_attention import SelfAttention
from heedful.layers.positions import SCHEMES, AlibiPositions, RelativeBucketPositions
from heedful.layers.positions.alibi import alibi_slopes
from heedful.layers.positions.relative_buckets import relative_buckets
from heedful.settings.attention import AttentionConfig
from heedful.settings.position_scheme import PositionSizes
from heedful.settings.relative_buckets import RelativeBucketConfig

B, H, T, S, K = 3, 5, 7, 11, 13
MASKS = masks(B, T, S)
BIASED = [name for name, scheme in SCHEMES.items() if scheme.uses("bias")]


def scheme(name: str, heads: int = H, causal: bool = False):
    torch.manual_seed(1)
    found = SCHEMES[name](PositionSizes(heads * K, K, S, heads, causal))
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.normal_()
    return found


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8, 12, 16, 31])
def test_slopes_are_those_of_the_authors(heads: int) -> None:
    # The formula of the paper's own code, which calls itself for what is between powers of two.
    def slopes(n: int) -> list[float]:
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return slopes(closest) + slopes(2 * closest)[0::2][: n - closest]

    assert alibi_slopes(heads) == pytest.approx(slopes(heads))


@pytest.mark.parametrize("heads", [5, 8])
def test_alibi_gives_the_weights_of_transformers(heads: int) -> None:
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch.ones(1, S, dtype=torch.long), heads, torch.float32)  # H 1 S, by key alone
    scores = torch.randn(heads, S, S, generator=torch.Generator().manual_seed(1))
    hidden = torch.ones(S, S, dtype=torch.bool).triu(1)
    ours = AlibiPositions(PositionSizes(K, K, S, heads, causal=True)).bias(torch.arange(S), torch.arange(S))
    weights = ((scores + each).masked_fill(hidden, -torch.inf).softmax(-1) for each in (ours, theirs))
    torch.testing.assert_close(*weights)


def test_alibi_is_symmetric_and_falls_with_the_distance() -> None:
    bias = scheme("alibi").bias(torch.arange(T), torch.arange(T))
    assert bias.shape == (H, T, T) and torch.equal(bias, bias.transpose(1, 2))
    for head, slope in enumerate(alibi_slopes(H)):
        assert float(bias[head, 2, 6]) == pytest.approx(-4 * slope)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("buckets", "farthest"), [(32, 128), (8, 20), (4, 4)])
def test_buckets_are_those_of_transformers(buckets: int, farthest: int, causal: bool) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    distances = torch.arange(-3 * farthest, 3 * farthest + 1)
    expected = T5Attention._relative_position_bucket(distances, not causal, buckets, farthest)
    assert torch.equal(relative_buckets(distances, buckets, farthest, causal=causal), expected)


def test_buckets_by_a_formula_written_once_more() -> None:
    def bucket(distance: int, buckets: int = 32, farthest: int = 128) -> int:
        half = buckets // 2
        first, away, exact = half * (distance > 0), abs(distance), half // 2
        if away < exact:
            return first + away
        beyond = math.log(away / exact) / math.log(farthest / exact) * (half - exact)
        return first + min(half - 1, exact + int(beyond + 1e-9))

    distances = [each for each in range(-200, 201) if abs(each) not in (16, 32, 64, 128)]  # rounding decides there
    found = relative_buckets(torch.tensor(distances), 32, 128, causal=False)
    assert found.tolist() == [bucket(each) for each in distances]


@pytest.mark.parametrize("causal", [False, True])
def test_each_head_and_bucket_has_its_own_bias(causal: bool) -> None:
    sizes, config = PositionSizes(H * K, K, S, H, causal), RelativeBucketConfig(num_buckets=8, max_distance=13)
    positions = RelativeBucketPositions(sizes, config)
    bias = positions.bias(torch.arange(40), torch.arange(40))
    for query, key in [(0, 0), (5, 4), (39, 0), (17, 3), (3, 17), (0, 39)]:
        bucket = int(relative_buckets(torch.tensor(key - query), 8, 13, causal=causal))
        assert torch.equal(bias[:, query, key], positions.biases[bucket])


def test_the_settings_of_buckets_are_checked() -> None:
    for wrong in ({"num_buckets": 7}, {"num_buckets": 2}, {"max_distance": 31}, {"max_distance": 2**20}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            RelativeBucketConfig(**wrong)


@pytest.mark.parametrize("name", BIASED)
def test_rows_at_their_own_positions_have_the_bias_of_the_whole_sequence(name: str) -> None:
    positions = scheme(name, causal=True)
    whole_HTS = positions.bias(torch.arange(S), torch.arange(S))
    queries_NQ, keys_NS = torch.tensor([[2, 10], [7, 0], [5, 5]]), torch.stack([torch.randperm(S) for _ in range(3)])
    bias_NHQS = positions.bias(queries_NQ, keys_NS)
    assert bias_NHQS.shape == (3, H, 2, S)
    for n in range(3):
        assert torch.equal(bias_NHQS[n], whole_HTS[:, queries_NQ[n]][:, :, keys_NS[n]])
    assert torch.equal(positions.bias(queries_NQ, torch.arange(S)[None])[1], whole_HTS[:, queries_NQ[1]])


@pytest.mark.parametrize("name", BIASED)
def test_longer_sequences_change_no_bias(name: str) -> None:
    positions = scheme(name)
    before = positions.bias(torch.arange(S), torch.arange(S))
    positions.resize(5 * S)
    longer = positions.bias(torch.arange(5 * S), torch.arange(5 * S))
    assert torch.equal(longer[:, :S, :S], before) and torch.isfinite(longer).all()


@pytest.mark.parametrize("mask_name", MASKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("by_row", [False, True])
def test_fused_and_explicit_attention_agree_with_a_bias(mask_name: str, causal: bool, by_row: bool) -> None:
    outputs, gradients = [], []
    for attend in (attend_fused, attend_explicit):
        generator = torch.Generator().manual_seed(1)
        shapes = [(B, H, T, K), (B, H, S, K), (B, H, S, K), (B, H, T, S) if by_row else (H, T, S)]
        inputs = [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]
        output = attend(*inputs[:3], MASKS[mask_name], causal, Scoring(0.3, bias=inputs[3]), 0.0)
        weights = torch.linspace(-1, 1, output.numel()).view_as(output)
        gradients.append(torch.autograd.grad((output * weights).sum(), inputs))
        outputs.append(output)
    torch.testing.assert_close(*outputs, atol=1e-5, rtol=0)
    for fused, explicit in zip(*gradients, strict=True):
        torch.testing.assert_close(fused, explicit, atol=1e-5, rtol=0)
        assert torch.isfinite(fused).all() and fused.any()


@pytest.mark.parametrize("keys", [48, 256, 560])
@torch.inference_mode()
def test_a_step_over_blocks_of_keys_is_the_attention_in_one_piece(keys: int) -> None:
    generator = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(B, H, n, K, generator=generator) for n in (3, keys, keys))
    bias = 5 * torch.randn(B, H, 3, keys, generator=generator)
    seen = torch.arange(keys) < torch.tensor([keys, 37, 300])[:, None]
    seen = seen[:, None, None].expand(B, 1, 3, keys)
    expected = ((query @ key.transpose(2, 3) * 0.3 + bias).masked_fill(~seen, -torch.inf)).softmax(-1) @ value
    found = attend_in_step(query, key, value, added_to_scores(seen), 0.3, bias)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    # Keys that are not seen, a block of them or more, change no bit.
    padded = [torch.cat([each, each], 2) for each in (key, value)]
    mask = added_to_scores(torch.cat([seen, torch.zeros_like(seen)], 3))
    if keys >= 256:
        assert torch.equal(attend_in_step(query, *padded, mask, 0.3, torch.cat([bias, bias], 3)), found)


@pytest.mark.parametrize("name", BIASED)
def test_weights_are_the_softmax_of_scores_and_bias(name: str) -> None:
    positions = scheme(name, causal=True)
    attention = SelfAttention(H * K, AttentionConfig(num_heads=H), positions)
    x = torch.randn(B, S, H * K, generator=torch.Generator().manual_seed(2))
    query, key, value = attention.project(x, torch.arange(S))
    scores = torch.einsum("bhtk,bhsk->bhts", query, key) / math.sqrt(K) + positions.bias(
        torch.arange(S), torch.arange(S)
    )
    weights = scores.masked_fill(torch.ones(S, S, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)
    expected = attention.output_projection((weights @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, causal=True), expected, atol=1e-5, rtol=0)


def test_gradients_reach_the_biases_of_all_buckets_in_use() -> None:
    positions = RelativeBucketPositions(PositionSizes(H * K, K, S, H, causal=True))
    attention = SelfAttention(H * K, AttentionConfig(num_heads=H), positions)
    attention(torch.randn(B, S, H * K), causal=True).square().sum().backward()
    used = positions.biases.grad.abs().sum(1) > 0
    assert used[:S].all() and not used[S:].any()
