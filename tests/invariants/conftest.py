import itertools
from collections.abc import Iterator
from functools import partial

import pytest
import torch
from torch import nn

from heedful.layers.positions import RelativeBucketPositions
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.recurrent import Recurrent
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.recurrent import RecurrentConfig, RecurrentStackConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.translation.task import TranslationModel

VOCABULARY = 31


def build_model(positions: str = "sinusoidal", norm: str = "post", scoring: str = "dot") -> EncoderDecoder:
    """A model of odd sizes, with another depth in the decoder, ready for evaluation."""

    def stack(layers: int) -> StackConfig:
        attention = AttentionConfig(num_heads=3, key_width=6, value_width=5, scoring=scoring)
        return StackConfig(layers, norm, 0.1, attention, FeedForwardConfig(inner_width=23))

    torch.manual_seed(1)
    config = EncoderDecoderConfig(VOCABULARY, 18, 61, positions, True, True, stack(2), stack(3))
    return with_large_biases(EncoderDecoder(config).eval())


def with_large_biases(model: nn.Module) -> nn.Module:
    """The model with biases of positions that matter as much as the scores; fresh ones are small."""
    for module in model.modules():
        if isinstance(module, RelativeBucketPositions):
            nn.init.normal_(module.biases)
    return model


def build_recurrent(cell: str = "lstm", attention: str = "additive", layers: int = 2) -> Recurrent:
    """A recurrent model of odd sizes, with another depth in the encoder, ready for evaluation."""
    torch.manual_seed(1)
    stacks = RecurrentStackConfig(3 - layers // 2), RecurrentStackConfig(layers)
    config = RecurrentConfig(VOCABULARY, 17, 26, 61, cell, attention, True, True, *stacks)
    return Recurrent(config).eval()


TRANSFORMERS = {
    f"{positions}-{norm}": partial(build_model, positions, norm)
    for positions, norm in itertools.product(["sinusoidal", "learned", "rotary", "none"], ["pre", "post"])
}
TRANSFORMERS |= {
    "alibi": partial(build_model, "alibi"),
    "relative_buckets": partial(build_model, "relative_buckets", "pre"),
    "additive with biases": partial(build_model, "alibi", scoring="additive"),
}
TRANSFORMERS["additive"] = partial(build_model, scoring="additive")
RECURRENT = {
    f"{cell}-{attention}": partial(build_recurrent, cell, attention)
    for cell, attention in itertools.product(["lstm", "gru"], ["additive", "general", "dot"])
}
RECURRENT["one layer"] = partial(build_recurrent, layers=1)
MODELS = TRANSFORMERS | RECURRENT


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> TranslationModel:
    return MODELS[request.param]()


@pytest.fixture(params=TRANSFORMERS)
def transformer(request: pytest.FixtureRequest) -> EncoderDecoder:
    return TRANSFORMERS[request.param]()


@pytest.fixture(params=RECURRENT)
def recurrent(request: pytest.FixtureRequest) -> Recurrent:
    return RECURRENT[request.param]()


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def make_model():
    return build_model
