"""What tests of the translator share: one with random weights, for what holds for any model."""

import pytest
import torch

from heedful.model_folder import LoadedModel, ModelConfig
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.translation.pipeline import Translator
from heedful.text.tokenizer import Tokenizer

TEXTS = ["a red dog runs", "", "the sea is blue and the sun is red", " ", "dog"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(TEXTS * 3, 283)
    stack = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=3))
    config = EncoderDecoderConfig(tokenizer.vocabulary_size, 12, 23, encoder=stack, decoder=stack)
    settings = ModelConfig("encoder_decoder", "translation", config)
    return Translator(LoadedModel(EncoderDecoder(config).eval(), settings, tokenizer))
