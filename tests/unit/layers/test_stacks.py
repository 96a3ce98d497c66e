"""Attention, blocks and stacks as modules that stand alone."""

import copy

import pytest
import torch
import torch.nn.functional as F

import heedful
from heedful.layers import (
    AttentionConfig,
    Decoder,
    Encoder,
    FeedForwardConfig,
    MultiHeadAttention,
    PositionScheme,
    PositionSizes,
    SelfAttention,
    SelfBlock,
    StackConfig,
    padding_mask,
)
from heedful.layers.blocks import CrossBlock
from heedful.layers.stacks import quieten, self_stack, stack_positions
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.encoder_decoder import EncoderDecoderConfig

B, T, S, D, H = 3, 7, 11, 15, 5
HEADS = AttentionConfig(num_heads=H)


def stack(norm: str = "pre") -> StackConfig:
    return StackConfig(2, norm, 0.1, HEADS, FeedForwardConfig(inner_width=13))


def numbers(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def torch_attention(ours: MultiHeadAttention) -> torch.nn.MultiheadAttention:
    """Torch's own layer with the same weights."""
    theirs = torch.nn.MultiheadAttention(D, H, batch_first=True)
    with torch.no_grad():
        for kind, parameter in (("weight", theirs.in_proj_weight), ("bias", theirs.in_proj_bias)):
            parts = [getattr(each, kind) for each in (ours.query_projection, ours.key_value_projection)]
            parameter.copy_(torch.cat(parts))
    theirs.out_proj.load_state_dict(ours.output_projection.state_dict())
    return theirs


@torch.inference_mode()
def test_attention_on_query_key_and_value_is_that_of_torch() -> None:
    ours = MultiHeadAttention(D, HEADS).eval()
    theirs = torch_attention(ours).eval()
    query, key, value = numbers(B, T, D), numbers(B, S, D, seed=2), numbers(B, S, D, seed=3)
    mask = torch.rand(T, S, generator=torch.Generator().manual_seed(4)) < 0.6
    mask[:, 0] = True
    torch.testing.assert_close(ours(query, key, value), theirs(query, key, value)[0])
    torch.testing.assert_close(ours(query, key), theirs(query, key, key)[0])
    torch.testing.assert_close(ours(query), theirs(query, query, query)[0])
    # Torch's masks are True where attention is not allowed.
    torch.testing.assert_close(ours(query, key, value, mask), theirs(query, key, value, attn_mask=~mask)[0])
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    torch.testing.assert_close(ours(query, causal=True), theirs(query, query, query, attn_mask=future)[0])


@torch.inference_mode()
def test_masks_may_differ_between_sequences_and_heads() -> None:
    attention = MultiHeadAttention(D, HEADS).eval()
    query, key = numbers(B, T, D), numbers(B, S, D, seed=2)
    mask_BTS = torch.rand(B, T, S, generator=torch.Generator().manual_seed(4)) < 0.6
    by_sequence = attention(query, key, mask=mask_BTS)
    torch.testing.assert_close(by_sequence, attention(query, key, mask=mask_BTS[:, None].expand(B, H, T, S)))
    torch.testing.assert_close(by_sequence[1:2], attention(query[1:2], key[1:2], mask=mask_BTS[1]))
    with pytest.raises(ValueError, match=r"T S, B T S or B H T S, not the shape \(7,\)"):
        attention(query, mask=torch.ones(T, dtype=torch.bool))


@torch.inference_mode()
def test_self_attention_takes_a_sequence_alone() -> None:
    attention, x = SelfAttention(D, HEADS).eval(), numbers(B, T, D)
    mask_BTT = torch.arange(T) < torch.tensor([T, 3, 5])[:, None, None]
    padded = attention(x, mask_BTT.expand(B, T, T))
    torch.testing.assert_close(padded[1:2, :3], attention(x[1:2, :3]))
    torch.testing.assert_close(attention(x, causal=True)[:, :3], attention(x[:, :3], causal=True))


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned", "alibi", "relative_buckets"])
@torch.inference_mode()
def test_an_encoder_sees_nothing_of_padding(positions: str) -> None:
    torch.manual_seed(1)
    encoder, x = Encoder(D, stack(), positions, max_length=S).eval(), numbers(B, T, D)
    whole = encoder(x, padding_mask(torch.tensor([T, 3, 5]), T))
    torch.testing.assert_close(whole[1:2, :3], encoder(x[1:2, :3]), atol=1e-5, rtol=1e-5)
    assert encoder.positions is not None and whole.shape == x.shape


@pytest.mark.parametrize("norm", ["pre", "post"])
@torch.inference_mode()
def test_the_stacks_are_those_of_the_model(norm: str) -> None:
    torch.manual_seed(1)
    config = EncoderDecoderConfig(19, D, 29, encoder=stack(norm), decoder=stack(norm))
    model = EncoderDecoder(config).eval()
    encoder = Encoder(D, config.encoder, "sinusoidal").eval()
    decoder = Decoder(D, config.decoder, "sinusoidal").eval()
    encoder.blocks.load_state_dict(model.encoder.state_dict())
    encoder.norm.load_state_dict(model.encoder_norm.state_dict())
    decoder.blocks.load_state_dict(model.decoder.state_dict())
    decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    source, target = (torch.randint(3, 19, (B, n), generator=torch.Generator().manual_seed(n)) for n in (S, T))
    lengths = torch.tensor([S, 4, 7])
    table, mask = model.target_embedding.table, padding_mask(lengths, S)
    memory = encoder(table(source) * D**0.5, mask)
    logits = F.linear(decoder(table(target) * D**0.5, memory, mask), table.weight)
    torch.testing.assert_close(logits, model(source, target, lengths), atol=1e-5, rtol=1e-5)


def test_stacks_are_modules_as_torch_users_know_them() -> None:
    encoder = Encoder(D, stack(), "relative_buckets")
    names = set(encoder.state_dict())
    assert {"positions.biases", "blocks.0.attention.query_key_value_projection.weight", "norm.weight"} <= names
    encoder(numbers(B, T, D)).square().mean().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())
    assert not torch.equal(encoder(numbers(B, T, D)), encoder(numbers(B, T, D)))  # dropout
    encoder.eval()
    twin = copy.deepcopy(encoder)
    assert torch.equal(twin(numbers(B, T, D)), encoder(numbers(B, T, D)))
    assert len(encoder.blocks[:1]) == 1 and torch.isfinite(encoder.blocks[:1](numbers(B, T, D))).all()
    assert encoder.double()(numbers(B, T, D).double()).dtype == torch.float64


def test_sequences_beyond_the_positions_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="have 7 positions, but max_length is 5"):
        Encoder(D, stack(), "learned", max_length=5)(numbers(B, T, D))
    assert Encoder(D, stack(), "sinusoidal", max_length=5)(numbers(B, T, D)).shape == (B, T, D)


class Gated(PositionScheme):
    """A scheme of somebody's own, with a layer that begins with weights of its own."""

    def __init__(self, sizes: PositionSizes) -> None:
        super().__init__(sizes)
        self.gate = torch.nn.Linear(sizes.width, sizes.width)
        torch.nn.init.zeros_(self.gate.weight)

    def add(self, x_BTD: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x_BTD + self.gate(x_BTD) + positions[:, None]


def test_stacks_take_a_scheme_of_ones_own() -> None:
    scheme = Gated(PositionSizes(D, D // H, 8, H))
    x_BTD = numbers(2, 5, D)
    encoder, decoder = Encoder(D, stack(), scheme), Decoder(D, stack(), scheme)
    assert encoder.positions is scheme and "positions.gate.weight" in encoder.state_dict()
    assert not scheme.gate.weight.any()
    assert not torch.allclose(encoder(x_BTD), encoder.norm(encoder.blocks(x_BTD)))
    decoder(x_BTD, encoder(x_BTD)).sum().backward()
    assert scheme.gate.weight.grad is not None


def test_a_scheme_that_does_not_fit_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match="the positions were made for num_heads=1, but the stack has"):
        Encoder(D, stack(), Gated(PositionSizes(D, D // H, 8)))
    for wrong in (Gated, 3):
        with pytest.raises(heedful.UserError, match=r"^setting 'positions' is .*: choose one of sinusoidal, "):
            Encoder(D, stack(), wrong)
    with pytest.raises(heedful.UserError, match=r"^setting 'positions' is Gated.*: choose one of sinusoidal, "):
        heedful.build("language_tiny", vocabulary_size=53, positions=Gated(PositionSizes(D, D // H, 8, H)))


def test_blocks_stand_alone() -> None:
    x, memory = numbers(B, T, D), numbers(B, S, D, seed=2)
    assert SelfBlock(D, stack())(x).shape == CrossBlock(D, stack())(x, memory).shape == x.shape


def test_what_pre_norm_blocks_add_is_scaled_by_the_root_of_their_number() -> None:
    torch.manual_seed(1)
    blocks = self_stack(D, stack(), stack_positions("none", D, stack(), T))
    before = {name: parameter.detach().clone() for name, parameter in blocks.named_parameters()}
    quieten(blocks)
    scaled = {f"{n}.{part}.output_projection.weight" for n in (0, 1) for part in ("attention", "feed_forward")}
    for name, parameter in blocks.named_parameters():
        assert torch.equal(parameter, before[name] * (4**-0.5 if name in scaled else 1)), name
