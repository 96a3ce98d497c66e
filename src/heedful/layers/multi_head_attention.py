"""Multi-head attention (paper, 3.2.2): from a sequence to itself, and to another one."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.layers.attention import AttentionLayer, Scoring
from heedful.layers.masks import by_head, window_mask
from heedful.layers.positions import PositionScheme
from heedful.settings.attention import AttentionConfig
from heedful.settings.position_scheme import PositionSizes


def split_heads(packed_BTX: Tensor, *parts: tuple[int, int]) -> list[Tensor]:
    """Cut the last axis into parts of (heads, width) each: B T (H K + G K + G V) -> B H T K, ..."""
    B, T, _ = packed_BTX.shape
    pieces = packed_BTX.split([heads * width for heads, width in parts], dim=-1)
    return [piece.view(B, T, heads, width).transpose(1, 2) for piece, (heads, width) in zip(pieces, parts, strict=True)]


class AttentionHeads(AttentionLayer):
    """What both kinds of multi-head attention share: the heads' widths, `attend`, and the output projection."""

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__()
        if config.key_width is None and width % config.num_heads:
            raise UserError(
                f"a width of {width} cannot be split over {config.num_heads} heads: "
                "choose num_heads that divides the width, or set key_width and value_width"
            )
        self.num_heads = config.num_heads
        self.num_key_value_heads = config.num_key_value_heads or config.num_heads
        self.key_width = config.width_per_head(width)
        self.value_width = config.value_width or self.key_width
        self.scale = 1.0 / math.sqrt(self.key_width) if config.scaled else 1.0
        self.dropout = config.dropout
        self.scoring_vector: nn.Parameter | None = None
        if config.scoring == "additive":
            self.scoring_vector = nn.Parameter(torch.randn(self.num_heads, self.key_width) * self.key_width**-0.5)
        self.output_projection = nn.Linear(self.num_heads * self.value_width, width, config.bias)

    def mix(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        causal: bool = False,
        bias: Tensor | None = None,
    ) -> Tensor:
        """Attend in every head, and join the heads: B T (H V)."""
        shared = self.num_heads // self.num_key_value_heads
        if shared > 1:
            key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
        dropout = self.dropout if self.training else 0.0
        scoring = Scoring(self.scale, self.scoring_vector, bias)
        heads_BHTV = self.attend(query, key, value, mask, causal, scoring, dropout)
        return heads_BHTV.transpose(1, 2).flatten(2)


class StepCache(Protocol):
    """What a step of self-attention needs from a cache: N groups of Q queries, which see some of their S keys.

    `key_positions` are N S, or 1 S where they are the same for all.
    """

    positions_NQ: Tensor
    key_positions: Tensor
    mask_N1QS: Tensor

    def spread(self, x_RX: Tensor) -> Tensor:
        """Rows as groups of queries, N Q X."""

    def collect(self, x_NQX: Tensor) -> Tensor:
        """Groups of queries as rows, R X."""

    def append(self, key_NHQK: Tensor, value_NHQV: Tensor) -> tuple[Tensor, Tensor]:
        """Store the new keys and values, and return all of them."""


class SelfAttention(AttentionHeads):
    """Attention from a sequence to itself; the three input projections are one matrix, hence one product.

    The position scheme is not part of the layer, and there is none by default. With a `window`, a position sees only
    positions closer than that.
    """

    def __init__(
        self,
        width: int,
        config: AttentionConfig,
        positions: PositionScheme | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__(width, config)
        # Held in a list: the scheme is shared by all layers, and belongs to the model.
        self._positions = [positions or PositionScheme(PositionSizes(width, self.key_width, 0, self.num_heads))]
        self.window = window
        heads, shared = self.num_heads, self.num_key_value_heads
        self.parts = ((heads, self.key_width), (shared, self.key_width), (shared, self.value_width))
        self.query_key_value_projection = nn.Linear(width, sum(n * size for n, size in self.parts), config.bias)

    def project(self, x_BTD: Tensor, positions: Tensor) -> list[Tensor]:
        """The queries, keys and values, by head."""
        return self._by_head(self.query_key_value_projection(x_BTD), positions)

    def _by_head(self, packed_BTX: Tensor, positions: Tensor) -> list[Tensor]:
        query, key, value = split_heads(packed_BTX, *self.parts)
        rotate = self._positions[0].rotate
        return [rotate(query, positions), rotate(key, positions), value]

    def forward(
        self, x_BTD: Tensor, mask: Tensor | None = None, *, causal: bool = False, positions: Tensor | None = None
    ) -> Tensor:
        """Attend within whole sequences; a mask is True where attention is allowed: T T, B T T or B H T T.

        Positions are T, or B T where they differ between rows; 0 .. T - 1 if they are not given.
        """
        if positions is None:
            positions = torch.arange(x_BTD.shape[1], device=x_BTD.device)
        query, key, value = self.project(x_BTD, positions)
        return self.attend_within(query, key, value, positions, by_head(mask), causal)

    def attend_within(
        self, query: Tensor, key: Tensor, value: Tensor, positions: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """Attend with queries, keys and values made by `project`."""
        if self.window is not None:
            near = window_mask(positions, positions, self.window)
            near = near if near.dim() == 2 else near[:, None]
            mask = near if mask is None else mask & near
        bias = self._positions[0].bias(positions, positions)
        return self.output_projection(self.mix(query, key, value, mask, causal, bias))

    def step(self, x_RD: Tensor, cache: StepCache) -> Tensor:
        """Attend from one new position per row to the positions in the cache, which takes in the new one."""
        packed_NQX = cache.spread(self.query_key_value_projection(x_RD))
        query, key, value = self._by_head(packed_NQX, cache.positions_NQ)
        key, value = cache.append(key, value)
        mask = cache.mask_N1QS
        if self.window is not None:
            near = window_mask(cache.positions_NQ, cache.key_positions, self.window)
            mask = mask.masked_fill(~near[:, None], -torch.inf)
        bias = self._positions[0].bias(cache.positions_NQ, cache.key_positions)
        return self.output_projection(cache.collect(self.mix(query, key, value, mask, bias=bias)))


class MultiHeadAttention(AttentionHeads):
    """Attention from one sequence to another, whose keys and values can be computed once for many steps."""

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__(width, config)
        shared = self.num_key_value_heads
        self.parts = ((shared, self.key_width), (shared, self.value_width))
        self.query_projection = nn.Linear(width, self.num_heads * self.key_width, config.bias)
        self.key_value_projection = nn.Linear(width, shared * (self.key_width + self.value_width), config.bias)

    def keys_values(self, key_BSD: Tensor, value_BSD: Tensor | None = None) -> list[Tensor]:
        """The keys and values, by head; both from one sequence unless another is given for the values."""
        key, value = split_heads(self.key_value_projection(key_BSD), *self.parts)
        if value_BSD is not None and value_BSD is not key_BSD:
            _, value = split_heads(self.key_value_projection(value_BSD), *self.parts)
        return [key, value]

    def forward(
        self,
        query_BTD: Tensor,
        key_BSD: Tensor | None = None,
        value_BSD: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        causal: bool = False,
    ) -> Tensor:
        """Attend from queries to keys, by default to the queries' own sequence; values come from the keys by default.

        A mask is True where attention is allowed: T S, B T S or B H T S.
        """
        key, value = self.keys_values(query_BTD if key_BSD is None else key_BSD, value_BSD)
        packed_BTX = self.query_projection(query_BTD)
        return self.output_projection(self._mixed(packed_BTX, key, value, by_head(mask), causal))

    def step(self, x_RD: Tensor, cache: StepCache, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Attend from one new position per row, where the rows of a group share keys and values."""
        query_NQX = cache.spread(self.query_projection(x_RD))
        return self.output_projection(cache.collect(self._mixed(query_NQX, key, value, mask)))

    def _mixed(
        self, query_BTX: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool = False
    ) -> Tensor:
        (query,) = split_heads(query_BTX, (self.num_heads, self.key_width))
        return self.mix(query, key, value, mask, causal)
