"""How many tokens of a batch the memory holds."""

from __future__ import annotations

import torch

from heedful.memory import memory_limit
from heedful.models.encoder_decoder import EncoderDecoderConfig


def tokens_that_fit(model: EncoderDecoderConfig, device: torch.device) -> int:
    """Tokens (of both sides) whose activations fit into half of the memory that the parameters leave free."""
    limit = torch.cuda.mem_get_info()[0] if device.type == "cuda" else memory_limit()
    free = limit - 16 * parameter_bytes(model) // 4
    return max(256, int(0.5 * free / activation_bytes(model)))


def parameter_bytes(model: EncoderDecoderConfig) -> int:
    """Bytes of the parameters in fp32; gradients, moments and the moving average take as much each."""
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
