"""Stacks of blocks (paper, 3.1): the lists that models are built from, and an encoder and a decoder for use alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import cast

import torch
from torch import Tensor, nn

from heedful.layers.blocks import CrossBlock, SelfBlock, final_norm, initialise
from heedful.layers.multi_head_attention import StepCache
from heedful.layers.positions import PositionScheme, make_positions
from heedful.settings.position_scheme import PositionConfig
from heedful.settings.stack import StackConfig, position_sizes


class SelfStack(nn.ModuleList):
    """Blocks with self-attention, one after the other; the norm after the last one belongs to the model."""

    def __iter__(self) -> Iterator[SelfBlock]:
        return cast(Iterator[SelfBlock], super().__iter__())

    def forward(
        self, x_BTD: Tensor, mask: Tensor | None = None, *, causal: bool = False, positions: Tensor | None = None
    ) -> Tensor:
        """Transform whole sequences; see `SelfAttention` for masks and positions."""
        for block in self:
            x_BTD = block(x_BTD, mask, causal=causal, positions=positions)
        return x_BTD

    def prefill(self, x_BTD: Tensor, positions_T: Tensor) -> tuple[Tensor, Tensor]:
        """The keys L B G T K and values L B G T V of whole sequences, for a decoder's cache."""
        keys, values = [], []
        for block in self:
            x_BTD, key, value = block.prefill(x_BTD, positions_T)
            keys.append(key)
            values.append(value)
        return torch.stack(keys), torch.stack(values)

    def step(self, x_RD: Tensor, caches: Sequence[StepCache]) -> Tensor:
        """Transform one new position per row."""
        for block, cache in zip(self, caches, strict=True):
            x_RD = block.step(x_RD, cache)
        return x_RD

    @property
    def cache_shape(self) -> tuple[int, int, int, int]:
        """Layers, key/value heads, and the widths of keys and of values."""
        attention = cast(SelfBlock, self[0]).attention
        return len(self), attention.num_key_value_heads, attention.key_width, attention.value_width


class CrossStack(nn.ModuleList):
    """Blocks with causal self-attention and attention to a memory, one after the other."""

    def __iter__(self) -> Iterator[CrossBlock]:
        return cast(Iterator[CrossBlock], super().__iter__())

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        memory_mask: Tensor | None = None,
        *,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Transform whole sequences; position t sees positions up to t, and all of the memory that the mask allows."""
        for block in self:
            x_BTD = block(x_BTD, memory_BSD, memory_mask, positions=positions)
        return x_BTD

    def keys_values(self, memory_BSD: Tensor) -> list[list[Tensor]]:
        """Each layer's cross-attention keys B G S K and values B G S V of a memory."""
        return [block.cross_attention.keys_values(memory_BSD) for block in self]

    def step(self, x_RD: Tensor, caches: Sequence[StepCache], keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Transform one new position per row; the rows of one sentence share its memory's keys and values."""
        for block, cache, key, value in zip(self, caches, keys, values, strict=True):
            x_RD = block.step(x_RD, cache, key, value, mask)
        return x_RD

    @property
    def cache_shape(self) -> tuple[int, int, int, int]:
        """Layers, key/value heads, and the widths of keys and of values."""
        attention = cast(CrossBlock, self[0]).cross_attention
        return len(self), attention.num_key_value_heads, attention.key_width, attention.value_width


def self_stack(width: int, config: StackConfig, positions: PositionScheme) -> SelfStack:
    """The blocks of an encoder, or of a decoder without a memory."""
    return SelfStack(SelfBlock(width, config, positions, layer) for layer in range(config.num_layers))


def cross_stack(width: int, config: StackConfig, positions: PositionScheme) -> CrossStack:
    """The blocks of a decoder with a memory."""
    return CrossStack(CrossBlock(width, config, positions, layer) for layer in range(config.num_layers))


@torch.no_grad()
def quieten(blocks: SelfStack | CrossStack) -> None:
    """Divide what pre-norm sub-layers add at first by the root of their number (Radford et al., 2019).

    Nothing normalises the sum itself in a pre-norm stack: without this it would drown the embeddings.
    """
    outputs = list(chain.from_iterable(block.added_by for block in blocks))
    for output in outputs:
        assert isinstance(output, nn.Linear)
        output.weight.mul_(len(outputs) ** -0.5)


def stack_positions(
    positions: PositionConfig | str, width: int, config: StackConfig, length: int, *, causal: bool = False
) -> PositionScheme:
    """The position scheme of a stack, which all of its blocks share."""
    return make_positions(positions, position_sizes(width, config, length, causal=causal))


class Encoder(nn.Module):
    """A whole standalone stack with self-attention: embeddings B T D in, contextual vectors B T D out.

    Positions are a scheme's name, its settings, or a scheme of your own, which has its length already.
    """

    def __init__(
        self,
        width: int,
        config: StackConfig,
        positions: PositionConfig | PositionScheme | str = "none",
        max_length: int = 512,
    ) -> None:
        super().__init__()
        self.positions = _given_positions(positions, width, config, max_length)
        self.blocks = self_stack(width, config, self.positions)
        self.norm = final_norm(width, config)
        _begin(self.blocks, config)

    def forward(self, x_BTD: Tensor, mask: Tensor | None = None, *, causal: bool = False) -> Tensor:
        """Transform whole sequences; a mask is True where attention is allowed: T T, B T T or B H T T."""
        x_BTD, places_T = _placed(x_BTD, self.positions)
        return self.norm(self.blocks(x_BTD, mask, causal=causal, positions=places_T))


class Decoder(nn.Module):
    """A whole stack with causal self-attention and attention to a memory, such as an encoder's output.

    Positions are a scheme's name, its settings, or a scheme of your own, which has its length already.
    """

    def __init__(
        self,
        width: int,
        config: StackConfig,
        positions: PositionConfig | PositionScheme | str = "none",
        max_length: int = 512,
    ) -> None:
        super().__init__()
        self.positions = _given_positions(positions, width, config, max_length, causal=True)
        self.blocks = cross_stack(width, config, self.positions)
        self.norm = final_norm(width, config)
        _begin(self.blocks, config)

    def forward(self, x_BTD: Tensor, memory_BSD: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Transform whole sequences; the mask of the memory is True where it may be seen: T S, B T S or B H T S."""
        x_BTD, places_T = _placed(x_BTD, self.positions)
        return self.norm(self.blocks(x_BTD, memory_BSD, memory_mask, positions=places_T))


def _given_positions(
    positions: PositionConfig | PositionScheme | str,
    width: int,
    config: StackConfig,
    length: int,
    *,
    causal: bool = False,
) -> PositionScheme:
    """A new scheme for a stack, or the one that was given, which must have been made for its sizes."""
    if not isinstance(positions, PositionScheme):
        return stack_positions(positions, width, config, length, causal=causal)
    own, wanted = positions.sizes, position_sizes(width, config, length, causal=causal)
    for name in ("width", "head_width", "num_heads"):
        if getattr(own, name) != getattr(wanted, name):
            raise ValueError(
                f"the positions were made for {name}={getattr(own, name)}, but the stack has {getattr(wanted, name)}: "
                f"make them with PositionSizes({width}, {wanted.head_width}, length, {wanted.num_heads})"
            )
    return positions


def _begin(blocks: SelfStack | CrossStack, config: StackConfig) -> None:
    """Draw the first weights; those of a position scheme are its own."""
    blocks.apply(initialise)
    if config.norm == "pre":
        quieten(blocks)


def _placed(x_BTD: Tensor, positions: PositionScheme) -> tuple[Tensor, Tensor]:
    """Embeddings plus what a scheme adds to them, and their positions."""
    length = x_BTD.shape[1]
    positions.cover(length)
    places_T = torch.arange(length, device=x_BTD.device)
    return positions.add(x_BTD, places_T), places_T
