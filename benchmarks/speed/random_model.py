"""A model with random weights whose translations are about as long as their sources.

Speed does not depend on what the weights have learned, but it does on lengths. So the end token's row is fitted: its
logit grows with the position in the target less the length of the source, as far as the decoder's output tells them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from benchmarks.speed.corpus import WORK, Corpus
from benchmarks.speed.sizes import Size
from heedful.decoding import DecodingOptions, Request, decode
from heedful.layers.attention import AttentionConfig
from heedful.layers.blocks import StackConfig
from heedful.layers.feed_forward import FeedForwardConfig
from heedful.machine import one_thread
from heedful.model_folder import ModelConfig, model_card, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from heedful.special_tokens import END, PAD, START
from heedful.tasks.translation import collate

# The spread of the logits: wide enough for one token to stand out, as in a trained model.
SPREAD = 8.0
# How much the end's logit grows with each position.
SLOPE = 4.0
NEVER = -1e4
SENTENCES = 128


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
    with torch.no_grad(), one_thread():
        model.decoder_blocks[-1].feed_forward_residual.norm.weight.fill_(SPREAD)
        _fit_end(model, corpus.test)
        # A trained model writes no other special token: none of the systems has to be told to leave them out.
        model.output.bias[[PAD, START]] = NEVER
    card = model_card(folder.name, "Random weights, for measuring speed.", "heedful bench", config.summary(), {})
    settings = ModelConfig("encoder_decoder", "translation", config)
    save_model_folder(folder, model, corpus.tokenizer, settings, card)
    return folder


def _fit_end(model: EncoderDecoder, sentences: list[list[int]]) -> None:
    """Fit the end's row to target position less source length, then its bias to the mean length."""
    draw = np.random.default_rng(1)
    sources = [np.array(each) for each in sentences[:SENTENCES]]
    targets = [draw.permutation(sentences[-number - 1]) for number in range(len(sources))]
    batch = collate(sources, targets)
    hidden_BTD = model.hidden(batch.source_BS, batch.source_lengths_B, batch.target_BT)
    wanted_BT = torch.arange(batch.target_BT.shape[1])[None] - batch.source_lengths_B[:, None].float()
    hidden_ND = torch.cat([hidden_BTD.flatten(0, 1), torch.ones(wanted_BT.numel(), 1)], dim=1).double()
    real = batch.labels_BT.flatten() != 0
    ridge = torch.eye(hidden_ND.shape[1], dtype=torch.float64)
    x, y = hidden_ND[real], wanted_BT.flatten()[real].double()
    fitted = torch.linalg.solve(x.T @ x + ridge, x.T @ y).float()
    model.output.weight[END] = SLOPE * fitted[:-1]
    low, high = -100.0, 200.0
    sources = sources[: SENTENCES // 2]
    wanted = float(np.mean([len(each) for each in sources]))
    for _ in range(9):
        model.output.bias[END] = (low + high) / 2
        low, high = ((low + high) / 2, high) if mean_length(model, sources) > wanted else (low, (low + high) / 2)


def mean_length(model: EncoderDecoder, sources: list[np.ndarray]) -> float:
    """That of greedy translations."""
    requests = [Request(number, each.tolist()) for number, each in enumerate(sources)]
    found = decode(model, requests, DecodingOptions(max_length=60), len(sources))
    return float(np.mean([len(each.hypotheses[0].tokens) for each in found]))
