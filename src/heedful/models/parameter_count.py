"""How many parameters an encoder-decoder has, by a closed formula and by counting."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.position_scheme import table_length
from heedful.settings.positions import config_of, traits_of
from heedful.settings.stack import StackConfig, position_sizes

if TYPE_CHECKING:
    from torch import nn

# The paper's Table 3 (ours at a shared vocabulary of 37,000 come to 63.1 and 214.2 million).
PUBLISHED_MILLIONS = {"translation_base": "65", "translation_big": "213"}


def formula(config: EncoderDecoderConfig) -> int:
    """The number of parameters, from the settings alone."""
    assert config.vocabulary_size is not None
    width, embedding = config.width, config.embedding
    tables = 1 + (not config.shared_embeddings) + (not config.tied_output)
    return (
        tables * config.vocabulary_size * width
        + config.output_bias * config.vocabulary_size
        + 2 * width * (embedding.segments + 2 * embedding.norm)
        + sum(_position_formula(config, stack) for stack in (config.encoder, config.decoder))
        + stack_formula(width, config.encoder, attentions=1)
        + stack_formula(width, config.decoder, attentions=2)
    )


def _position_formula(config: EncoderDecoderConfig, stack: StackConfig) -> int:
    sizes = position_sizes(config.width, stack, table_length(config.max_length + 1))
    return traits_of(config.positions).num_parameters(sizes, config_of(config.positions))


def stack_formula(width: int, config: StackConfig, attentions: int) -> int:
    """The number of parameters of a stack with this many attentions per block."""
    settings, network = config.attention, config.feed_forward
    heads = settings.num_heads
    shared = settings.num_key_value_heads or heads
    key = settings.key_width or width // heads
    value = settings.value_width or key
    projections = _linear(width, heads * key + shared * (key + value), settings.bias)
    attention = projections + _linear(heads * value, width, settings.bias)
    attention += heads * key if settings.scoring == "additive" else 0
    inner = network.inner_width or 4 * width
    projected = 2 * inner if network.activation == "swiglu" else inner
    feed_forward = _linear(width, projected, network.bias) + _linear(inner, width, network.bias)
    norm = (2 if config.norm_kind == "layer" else 1) * width
    block = attentions * (attention + norm) + feed_forward + norm
    return config.num_layers * block + (norm if config.norm == "pre" else 0)


def _linear(inputs: int, outputs: int, bias: bool) -> int:
    return (inputs + bias) * outputs


def counted(model: nn.Module) -> int:
    """The number of parameters of a model, which may be on the meta device."""
    return sum(parameter.numel() for parameter in model.parameters())


def counted_in(shapes: Mapping[str, Sequence[int]]) -> int:
    """The number of parameters of a model with weights of these shapes."""
    return sum(math.prod(shape) for shape in shapes.values())


def parameter_table(shapes: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """The counts of the model's top-level parts, for display."""
    groups: dict[str, int] = {}
    for name, shape in shapes.items():
        part = name.split(".")[0].removesuffix("_norm").removesuffix("_embedding")
        groups[part] = groups.get(part, 0) + math.prod(shape)
    return {"parameters": f"{counted_in(shapes):,}", **{f"  {part}": f"{count:,}" for part, count in groups.items()}}
