"""How much of a batch, or of a decoding cache, the memory holds."""

from __future__ import annotations

import torch

from heedful.layers.blocks import StackConfig
from heedful.machine import available_cores
from heedful.memory import memory_limit
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from heedful.models.parameter_count import formula

# Target positions that a slot of the decoding cache has, for sources of up to 64 subwords and 50 more.
SLOT_LENGTH = 120


def free_memory(device: torch.device) -> int:
    """Bytes that may be taken on a device."""
    return torch.cuda.mem_get_info()[0] if device.type == "cuda" else memory_limit()


def tokens_that_fit(model: EncoderDecoderConfig, device: torch.device, workers: int) -> int:
    """Tokens (of both sides) whose activations fit into half of the memory that the parameters leave free."""
    # Parameters, their gradient, two moments, a moving average, and the gradient that each worker makes.
    free = free_memory(device) - (5 + workers) * parameter_bytes(model)
    return max(256, int(0.5 * free / activation_bytes(model)))


def parameter_bytes(model: EncoderDecoderConfig) -> int:
    """Bytes of the parameters in fp32, a little more rather than less."""
    assert model.vocabulary_size is not None
    return 4 * (formula(model) + 2 * model.vocabulary_size * model.width)


def activation_bytes(model: EncoderDecoderConfig) -> int:
    """Bytes that one token needs between the forward and the backward pass, at the longest length.

    Counted per block: inputs, projections, attention output and norms (about 16 widths an attention), twice the
    feed-forward's inner width, and per head a row of attention scores where the kernel keeps them. A token goes
    through the encoder or the decoder; the larger of the two counts.
    """
    return max(_stack_bytes(model, model.encoder, 1), _stack_bytes(model, model.decoder, 2))


def _stack_bytes(model: EncoderDecoderConfig, stack: StackConfig, attentions: int) -> int:
    inner = stack.feed_forward.inner_width or 4 * model.width
    block = 16 * attentions * model.width + 2 * inner + attentions * stack.attention.num_heads * model.max_length
    return 4 * stack.num_layers * block


def sentences_that_fit(model: EncoderDecoder, rows: int, longest: int | None) -> int:
    """Sentences of `rows` hypotheses, of up to `longest` tokens each if that is set, whose caches fit into a
    quarter of what one of the processes may take."""
    attention = model.decoder_blocks[0].cross_attention
    position = 4 * len(model.decoder) * attention.num_heads * (attention.key_width + attention.value_width)
    # Self-attention for every row, cross-attention once a sentence.
    sentence = position * max(SLOT_LENGTH, longest or 0) * (rows + 1)
    share = 0.25 * free_memory(model.device) / (available_cores() if model.device.type == "cpu" else 1)
    return max(1, int(share / sentence))
