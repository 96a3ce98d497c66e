"""How much of a batch, or of a decoding cache, the memory holds."""

from __future__ import annotations

import torch

from heedful.machine import available_cores
from heedful.memory import memory_limit
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig

# Target positions that a slot of the decoding cache has, for sources of up to 64 subwords and 50 more.
SLOT_LENGTH = 120


def free_memory(device: torch.device) -> int:
    """Bytes that may be taken on a device."""
    return torch.cuda.mem_get_info()[0] if device.type == "cuda" else memory_limit()


def tokens_that_fit(model: EncoderDecoderConfig, device: torch.device) -> int:
    """Tokens (of both sides) whose activations fit into half of the memory that the parameters leave free."""
    # Parameters, gradients, two moments and a moving average.
    free = free_memory(device) - 5 * parameter_bytes(model)
    return max(256, int(0.5 * free / activation_bytes(model)))


def parameter_bytes(model: EncoderDecoderConfig) -> int:
    """Bytes of the parameters in fp32, a little more rather than less."""
    assert model.vocabulary_size is not None
    width, inner = model.width, model.encoder.feed_forward.inner_width or 4 * model.width
    encoder = model.encoder.num_layers * (4 * width * width + 2 * width * inner)
    decoder = model.decoder.num_layers * (8 * width * width + 2 * width * inner)
    return 4 * (encoder + decoder + 3 * model.vocabulary_size * width)


def activation_bytes(model: EncoderDecoderConfig) -> int:
    """Bytes that one token needs between the forward and the backward pass, at the longest length.

    Counted per block: inputs, packed projections, attention output and norms (about 16 widths), twice the
    feed-forward's inner width, and per head a row of attention scores where the kernel keeps them.
    """
    inner = model.encoder.feed_forward.inner_width or 4 * model.width
    layers = model.encoder.num_layers + model.decoder.num_layers
    heads = model.encoder.attention.num_heads
    return 4 * layers * (16 * model.width + 2 * inner + heads * model.max_length)


def sentences_that_fit(model: EncoderDecoder, rows: int) -> int:
    """Sentences of `rows` hypotheses whose caches fit into a quarter of what one of the processes may take."""
    attention = model.decoder_blocks[0].cross_attention
    position = 4 * len(model.decoder) * attention.num_heads * (attention.key_width + attention.value_width)
    # Self-attention for every row, cross-attention once a sentence.
    sentence = position * SLOT_LENGTH * (rows + 1)
    share = 0.25 * free_memory(model.device) / (available_cores() if model.device.type == "cpu" else 1)
    return max(1, int(share / sentence))
