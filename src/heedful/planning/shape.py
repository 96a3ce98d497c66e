"""A model as sizes: its stacks of equal blocks, its sequences and its output layer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from heedful.settings.positions import name_of, traits_of
from heedful.settings.stack import StackConfig

# The share of its tokens that a masked language model must predict (Devlin et al., 2019).
MASKED_SHARE = 0.15


@dataclass(frozen=True)
class StackShape:
    """A stack of equal blocks: its settings, its tokens per sequence, and those of the memory that it attends to.

    Its positions may rotate queries and keys (`rotates`), or add a bias to the scores (`biased`).
    """

    config: StackConfig
    width: int
    length: int
    memory_length: int = 0
    rotates: bool = False
    biased: bool = False

    @property
    def attentions(self) -> int:
        """Attentions of a block."""
        return 2 if self.memory_length else 1

    @property
    def heads_width(self) -> int:
        """The width of all queries of a token."""
        attention = self.config.attention
        return attention.num_heads * attention.width_per_head(self.width)

    @property
    def values_width(self) -> int:
        """The width of what all heads give for a token."""
        attention = self.config.attention
        return attention.num_heads * (attention.value_width or attention.width_per_head(self.width))

    @property
    def keys_values_width(self) -> int:
        """The width of all keys and values of a token."""
        attention = self.config.attention
        key = attention.width_per_head(self.width)
        return (attention.num_key_value_heads or attention.num_heads) * (key + (attention.value_width or key))

    @property
    def inner_width(self) -> int:
        """The width inside the feed-forward network."""
        return self.config.feed_forward.inner_width or 4 * self.width

    @property
    def projected_width(self) -> int:
        """The width that the first layer of the feed-forward network gives."""
        return self.inner_width * (2 if self.config.feed_forward.activation == "swiglu" else 1)

    @property
    def local_layers(self) -> int:
        """Layers that see a window."""
        layers = range(self.config.num_layers)
        return sum(self.config.window(layer) is not None for layer in layers)


@dataclass(frozen=True)
class ModelShape:
    """A model as sizes; a sequence has `tokens` on all sides, of which `targets` are predicted out of `classes`.

    `front` counts the multiplications for a sequence outside the blocks, apart from the output layer.
    """

    stacks: tuple[StackShape, ...]
    width: int
    classes: int
    tokens: int
    targets: int
    front: int = 0


def shape_of(family: str, model: Any) -> ModelShape:
    """The sizes of a model whose sequences are as long as its settings let them be."""
    positions = getattr(model, "positions", "none")
    kinds = (name_of(positions) == "rotary", traits_of(positions).adds_bias)
    if family == "encoder_decoder":
        length = model.max_length
        encoder = StackShape(model.encoder, model.width, length, 0, *kinds)
        decoder = StackShape(model.decoder, model.width, length, length, *kinds)
        return ModelShape((encoder, decoder), model.width, model.vocabulary_size, 2 * length, length)
    if family == "vision":
        stack = StackShape(model.stack, model.width, model.length)
        patch = math.prod(model.patch_size) * model.channels
        patches = math.prod(model.grid)
        around = model.convolution ** len(model.grid) * model.width  # 0 without a convolution
        front = patches * model.width * (patch + around)
        return ModelShape((stack,), model.width, model.num_classes, model.length, 1, front)
    stack = StackShape(model.stack, model.width, model.max_length, 0, *kinds)
    length = model.max_length
    if family == "decoder_only":
        return ModelShape((stack,), model.width, model.vocabulary_size, length, length)
    front = length * model.width**2 * model.convolution
    if model.head != "masked":
        targets = length if model.head == "tags" else 1
        front += model.width**2 * (model.pooler and model.head == "classes")
        return ModelShape((stack,), model.width, model.num_labels, length, targets, front)
    targets = max(1, round(MASKED_SHARE * length))
    front += targets * model.width**2  # the dense layer before the vocabulary
    return ModelShape((stack,), model.width, model.vocabulary_size, length, targets, front)


def with_layers(family: str, model: Any, layers: int) -> Any:
    """The settings of the same model with this many layers in every stack."""
    names = ("encoder", "decoder") if family == "encoder_decoder" else ("stack",)
    return replace(model, **{name: replace(getattr(model, name), num_layers=layers) for name in names})
