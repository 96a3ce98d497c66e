"""Sequences that are longer than a model's positions reach are an error in words, wherever they come in."""

import pytest
import torch

import heedful
from heedful.layers import AttentionConfig, Encoder, StackConfig

STACK = {"num_layers": 1, "attention": {"num_heads": 2}}
TABLES = pytest.mark.parametrize("positions", ["learned", "rotary"])


@TABLES
def test_too_many_positions_for_a_model_are_refused(positions: str) -> None:
    own = {"vocabulary_size": 53, "width": 24, "positions": positions, "max_length": 32}
    for name in ("language_tiny", "encoder_tiny"):
        model = heedful.build(name, stack=STACK, **own)
        assert model(torch.full((2, 32), 5)).shape[:2] == (2, 32)
        with pytest.raises(ValueError, match="the sequences have 40 positions, but max_length is 32"):
            model(torch.full((2, 40), 5))
    model = heedful.build("translation_tiny", encoder=STACK, decoder=STACK, **own)
    short, long = torch.full((2, 33), 5), torch.full((2, 60), 5)  # 32 tokens, and the end
    assert model(short, short).shape == (2, 33, 53)
    for source, target in ((long, short), (short, long)):
        with pytest.raises(ValueError, match="the sequences have 60 positions, but max_length is 32"):
            model(source, target)


def test_a_stack_says_the_same() -> None:
    encoder = Encoder(24, StackConfig(1, attention=AttentionConfig(2)), "learned", max_length=8)
    with pytest.raises(ValueError, match="the sequences have 9 positions, but max_length is 8"):
        encoder(torch.randn(1, 9, 24))


@TABLES
def test_a_prompt_that_is_too_long_is_refused(positions: str) -> None:
    model = heedful.build(
        "language_tiny", vocabulary_size=53, width=24, max_length=32, positions=positions, stack=STACK
    ).eval()
    heedful.greedy(model, [[5] * 32])
    with pytest.raises(heedful.UserError, match="the prompt has 33 tokens, but max_length is 32: shorten it"):
        heedful.greedy(model, [[5] * 33])


@TABLES
def test_a_source_that_is_too_long_is_refused(positions: str) -> None:
    own = {"vocabulary_size": 53, "width": 24, "positions": positions, "max_length": 32}
    model = heedful.build("translation_tiny", encoder=STACK, decoder=STACK, **own).eval()
    heedful.greedy(model, [[5] * 32])
    with pytest.raises(heedful.UserError, match="the source has 33 tokens, but max_length is 32: shorten it"):
        heedful.beam(model, [[5, 6], [5] * 33])


def test_rows_of_several_documents_may_be_longer() -> None:
    model = heedful.build("language_tiny", vocabulary_size=53, width=24, max_length=8, stack=STACK)
    documents_BT = torch.arange(2).repeat_interleave(6)[None]
    assert model(torch.full((1, 12), 5), documents_BT).shape == (1, 12, 53)


def test_positions_without_a_limit_grow() -> None:
    model = heedful.build("language_tiny", vocabulary_size=53, width=24, max_length=8, stack=STACK, positions="alibi")
    assert model(torch.full((1, 12), 5)).shape == (1, 12, 53)
