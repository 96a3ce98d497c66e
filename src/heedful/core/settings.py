"""From a model folder's settings to those of the engine, and from the names of its tensors to the engine's."""

from __future__ import annotations

import math
import re
from typing import Any

from heedful.core.interface import ACTIVATIONS, POSITIONS, ModelSettings, StackSettings, filled
from heedful.settings.positions import name_of

# No text has more tokens: a window of so many is as wide as any.
LONGEST_TEXT = 2**24
FAMILIES = ("encoder_decoder", "decoder_only", "encoder_only")

# Beginnings of names in model.safetensors, and of the same in the engine.
_NAMES = {
    "encoder_decoder": (
        (r"(source|target)_embedding\.table\.weight$", r"\1.embedding"),
        (r"(source|target)_embedding\.segments\.weight$", r"\1.segments"),
        (r"(source|target)_embedding\.norm\.", r"\1.embedding_norm."),
        (r"(source|target)_embedding\.positions\.", r"\1.positions."),
        (r"(en|de)coder_norm\.", r"\1coder.norm."),
        (r"source\.", "encoder."),
        (r"target\.", "decoder."),
    ),
    "decoder_only": (
        (r"embedding\.table\.weight$", "decoder.embedding"),
        (r"embedding\.segments\.weight$", "decoder.segments"),
        (r"embedding\.norm\.", "decoder.embedding_norm."),
        (r"(embedding\.)?positions\.", "decoder.positions."),
        (r"blocks\.", "decoder."),
        (r"norm\.", "decoder.norm."),
    ),
    "encoder_only": (
        (r"embedding\.table\.weight$", "encoder.embedding"),
        (r"embedding\.segments\.weight$", "encoder.segments"),
        (r"embedding\.norm\.", "encoder.embedding_norm."),
        (r"(embedding\.)?positions\.", "encoder.positions."),
        (r"neighbourhood\.projection\.", "convolution."),
        (r"pooler\.0\.", "pooler."),
        (r"blocks\.", "encoder."),
        (r"norm\.", "encoder.norm."),
    ),
}


def engine_name(family: str, name: str) -> str:
    """What the engine calls a tensor of a model folder."""
    for pattern, replacement in _NAMES[family]:
        name = re.sub("^" + pattern, replacement, name)
    return name


def stack_settings(config: Any, stack: Any, position_rows: int) -> StackSettings:
    """The engine's settings of one of a model's stacks."""
    attention, feed_forward, embedding = stack.attention, stack.feed_forward, config.embedding
    key_width = attention.width_per_head(config.width)
    return filled(
        StackSettings,
        layers=stack.num_layers,
        heads=attention.num_heads,
        key_value_heads=attention.num_key_value_heads or attention.num_heads,
        key_width=key_width,
        value_width=attention.value_width or key_width,
        inner_width=feed_forward.inner_width or 4 * config.width,
        activation=ACTIVATIONS.index(feed_forward.activation),
        pre_norm=stack.norm == "pre",
        rms_norm=stack.norm_kind == "rms",
        window=min(stack.local_window or 0, LONGEST_TEXT),
        attention_bias=attention.bias,
        feed_forward_bias=feed_forward.bias,
        additive=attention.scoring == "additive",
        positions=POSITIONS.index(name_of(config.positions)),
        position_rows=position_rows,
        segments=embedding.segments,
        embedding_norm=embedding.norm,
        norm_epsilon=stack.norm_epsilon,
        embedding_norm_epsilon=embedding.norm_epsilon,
        embedding_scale=math.sqrt(config.width) if embedding.scaled else 1.0,
        score_scale=1.0 / math.sqrt(key_width) if attention.scaled else 1.0,
    )


def model_settings(family: str, config: Any, max_length: int, position_rows: int, *, int8: bool) -> ModelSettings:
    """The engine's settings of a model; position tables have so many rows."""
    special = config.special_tokens
    values: dict[str, Any] = {}
    if family == "encoder_decoder":
        values |= {"shared_embeddings": config.shared_embeddings, "output_bias": config.output_bias}
        values["encoder"] = stack_settings(config, config.encoder, position_rows)
        values["decoder"] = stack_settings(config, config.decoder, position_rows)
    elif family == "decoder_only":
        values["decoder"] = stack_settings(config, config.stack, position_rows)
    else:
        values["encoder"] = stack_settings(config, config.stack, position_rows)
        values["outputs"] = {"masked": config.vocabulary_size, "none": 0}.get(config.head, config.num_labels)
        values |= {"output_bias": config.head != "none", "transform": config.head == "masked"}
        values |= {"pooler": config.pooler and config.head in ("classes", "none"), "convolution": config.convolution}
    return filled(
        ModelSettings,
        int8=int8,
        vocabulary=config.vocabulary_size,
        width=config.width,
        max_length=max_length,
        pad=special.pad,
        start=special.start,
        end=special.end,
        mask=-1 if special.mask is None else special.mask,
        **values,
    )
