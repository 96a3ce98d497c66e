"""A model with random weights: speed depends on sizes and lengths, not on what the weights have learned."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.speed.corpus import WORK, Corpus
from benchmarks.speed.sizes import Size
from heedful.model_folder import ModelConfig, model_card, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import PAD, START

# The spread of the logits: wide enough for one token to stand out, as in a trained model.
SPREAD = 8.0
NEVER = -1e4


def random_model(size: Size, corpus: Corpus) -> Path:
    """The folder of such a model, made if it is not there."""
    folder = WORK / f"random-{corpus.kind}-{size.width}"
    if (folder / "model.safetensors").is_file():
        return folder
    torch.manual_seed(1)
    stack = StackConfig(
        num_layers=size.layers,
        attention=AttentionConfig(num_heads=size.heads),
        feed_forward=FeedForwardConfig(inner_width=size.inner),
    )
    config = EncoderDecoderConfig(
        corpus.tokenizer.vocabulary_size, size.width, encoder=stack, decoder=stack, output_bias=True
    )
    model = EncoderDecoder(config).eval()
    with torch.no_grad():
        model.decoder[-1].feed_forward_residual.norm.weight.fill_(SPREAD)
        # A trained model writes no other special token: none of the systems has to be told to leave them out.
        model.output.bias[[PAD, START]] = NEVER
    card = model_card(folder.name, "Random weights, for measuring speed.", "heedful bench", config.summary(), {})
    settings = ModelConfig("encoder_decoder", "translation", config)
    save_model_folder(folder, model, corpus.tokenizer, settings, card)
    return folder
