import itertools

import pytest
import torch

from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.layers.feed_forward import FeedForwardConfig
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig

VOCABULARY = 31


def build_model(positions: str = "sinusoidal", norm: str = "post") -> EncoderDecoder:
    """A model of odd sizes, with another depth in the decoder, ready for evaluation."""

    def stack(layers: int) -> StackConfig:
        attention = AttentionConfig(num_heads=3, key_width=6, value_width=5)
        return StackConfig(layers, norm, 0.1, attention, FeedForwardConfig(inner_width=23))

    torch.manual_seed(1)
    config = EncoderDecoderConfig(VOCABULARY, 18, 61, positions, True, True, stack(2), stack(3))
    return EncoderDecoder(config).eval()


@pytest.fixture(params=itertools.product(["sinusoidal", "learned", "rotary", "none"], ["pre", "post"]))
def model(request: pytest.FixtureRequest) -> EncoderDecoder:
    return build_model(*request.param)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def make_model():
    return build_model
