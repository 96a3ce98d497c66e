"""From a model folder's settings to the engine's, and from the names of its tensors to the engine's."""

from __future__ import annotations

import math
from typing import Any

from heedful.core.interface import ACTIVATIONS, POSITIONS, ModelSettings, StackSettings, filled
from heedful.settings.positions import name_of

# No text has more tokens, so no window needs to be wider.
LONGEST_TEXT = 2**24
FAMILIES = ("encoder_decoder", "decoder_only", "encoder_only")


def _front_names(embedding: str, stack: str) -> tuple[tuple[str, str], ...]:
    """The names of what comes before the blocks of a stack."""
    return (
        (f"{embedding}.norm.", f"{stack}.embedding_norm."),
        (f"{embedding}.positions.", f"{stack}.positions."),
        (f"{embedding}.segments.weight", f"{stack}.segments"),
        (f"{embedding}.table.weight", f"{stack}.embedding"),
    )


# Prefixes of names in model.safetensors, and in the engine. The first pair that fits counts, in either direction: where
# a file may have one of two names, the one that we write comes first.
_NAMES = {
    "encoder_decoder": (
        *_front_names("source_embedding", "encoder"),
        *_front_names("target_embedding", "decoder"),
        ("encoder_norm.", "encoder.norm."),
        ("decoder_norm.", "decoder.norm."),
    ),
    "decoder_only": (
        ("positions.", "decoder.positions."),
        *_front_names("embedding", "decoder"),
        ("norm.", "decoder.norm."),
        ("blocks.", "decoder."),
    ),
    "encoder_only": (
        ("positions.", "encoder.positions."),
        *_front_names("embedding", "encoder"),
        ("neighbourhood.projection.", "convolution."),
        ("pooler.0.", "pooler."),
        ("norm.", "encoder.norm."),
        ("blocks.", "encoder."),
    ),
}


def engine_name(family: str, stored: str) -> str:
    """The engine's name for a tensor of a model folder."""
    for beginning, own in _NAMES[family]:
        if stored.startswith(beginning):
            return own + stored.removeprefix(beginning)
    return stored


def stored_name(family: str, name: str) -> str:
    """A model folder's name for a tensor of the engine: the inverse of `engine_name`."""
    for beginning, own in _NAMES[family]:
        if name.startswith(own):
            return beginning + name.removeprefix(own)
    return name


def stack_settings(config: Any, stack: Any, position_rows: int) -> StackSettings:
    """The engine's settings for one of a model's stacks."""
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
    """The engine's settings for a model; its position tables have `position_rows` rows."""
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
