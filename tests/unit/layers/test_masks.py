"""Masks of numbers are refused: there are three ways to read them."""

import numpy as np
import pytest
import torch

from heedful import layers
from heedful.settings.attention import AttentionConfig
from heedful.settings.stack import StackConfig

ATTENTION = AttentionConfig(num_heads=2)
STACK = StackConfig(num_layers=1, attention=ATTENTION)
SEEN = torch.ones(5, 5, dtype=torch.bool).tril()


def makers() -> dict[str, object]:
    """What takes a mask of a sequence 5, or of a memory 5, of width 6."""
    torch.manual_seed(1)
    x_BTD = torch.randn(3, 5, 6)
    own, other = layers.SelfAttention(6, ATTENTION), layers.MultiHeadAttention(6, ATTENTION)
    encoder, decoder = layers.Encoder(6, STACK).eval(), layers.Decoder(6, STACK).eval()
    return {
        "SelfAttention": lambda mask: own.eval()(x_BTD, mask),
        "SelfAttention, causal": lambda mask: own.eval()(x_BTD, mask, causal=True),
        "MultiHeadAttention": lambda mask: other.eval()(x_BTD, x_BTD, mask=mask),
        "Encoder": lambda mask: encoder(x_BTD, mask),
        "Decoder": lambda mask: decoder(x_BTD, x_BTD, mask),
    }


@pytest.mark.parametrize("name", makers())
@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.float64, torch.int64, torch.int32, torch.uint8])
@pytest.mark.parametrize("shape", [(5, 5), (1, 5, 5), (1, 1, 5, 5)])
def test_numbers_are_refused(name: str, kind: torch.dtype, shape: tuple[int, ...]) -> None:
    mask = SEEN.expand(shape)
    with pytest.raises(ValueError, match=rf"the mask is of {kind}, but must be a tensor of torch\.bool, True where"):
        makers()[name](mask.to(kind))
    assert makers()[name](mask).isfinite().all()


@pytest.mark.parametrize("name", makers())
@pytest.mark.parametrize("mask", [SEEN.numpy(), SEEN.tolist(), 1, np.ones((5, 5))], ids=["array", "list", "1", "ones"])
def test_what_is_not_a_tensor_is_refused(name: str, mask: object) -> None:
    with pytest.raises(ValueError, match=r"the mask is of \w+, but must be a tensor of torch\.bool"):
        makers()[name](mask)


@pytest.mark.parametrize("name", makers())
def test_what_the_error_says_to_write_is_the_same_mask(name: str) -> None:
    expected = makers()[name](SEEN)
    added = torch.zeros(5, 5).masked_fill(~SEEN, -torch.inf)
    for mask in (SEEN.float() != 0, SEEN.to(torch.uint8) != 0, (~SEEN).int() == 0, added == 0):
        assert torch.equal(makers()[name](mask), expected)
