"""Scaled dot-product attention (paper, 3.2.1) and its multi-head form (3.2.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import require
from heedful.errors import UserError
from heedful.layers.additive_scores import additive_scores
from heedful.layers.blockwise_attention import attend_in_step, mixed
from heedful.layers.dropout import dropout as byte_dropout
from heedful.layers.masks import is_added
from heedful.layers.positions import PositionScheme


@dataclass(frozen=True)
class AttentionConfig:
    """The settings of multi-head attention; widths are per head, and default to model width / heads.

    With fewer key/value heads than heads, several heads share theirs (Ainslie et al., 2023).
    """

    num_heads: int = 8
    num_key_value_heads: int | None = None
    key_width: int | None = None
    value_width: int | None = None
    scoring: Literal["dot", "additive"] = "dot"
    scaled: bool = True
    bias: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require(self.num_heads, "num_heads", 1)
        shared = self.num_key_value_heads or self.num_heads
        if shared < 1 or self.num_heads % shared:
            raise UserError(f"num_key_value_heads is {shared}, but must divide num_heads, which is {self.num_heads}")
        require(self.key_width or 1, "key_width", 1)
        require(self.value_width or 1, "value_width", 1)
        require(self.dropout, "attention dropout", 0, 1)


@dataclass(frozen=True)
class Scoring:
    """How well a key suits a query: their scaled dot product (equation 1), or the additive form of Bahdanau et
    al. (2015), vector . tanh(query + key), which the paper compares it with (3.2.1)."""

    scale: float
    vector_HK: Tensor | None = None

    def __call__(self, query_BHTK: Tensor, key_BHSK: Tensor) -> Tensor:
        """The scores B H T S before masking."""
        if self.vector_HK is None:
            return (query_BHTK * self.scale) @ key_BHSK.transpose(-1, -2)
        return additive_scores(query_BHTK, key_BHSK, self.vector_HK)


# Queries and keys in, the scores B H T S before masking out.
Score = Callable[[Tensor, Tensor], Tensor]
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool, Scoring, float], Tensor]


def attend_fused(
    query_BHTK: Tensor,
    key_BHSK: Tensor,
    value_BHSV: Tensor,
    mask: Tensor | None,
    causal: bool,
    scoring: Scoring,
    dropout: float,
) -> Tensor:
    """Attention by torch's fused kernel; `mask` is True where a query may see a key, or what is added to the scores.

    With a mask that is added, every query must see some key.
    """
    on_cpu = query_BHTK.device.type == "cpu"
    if scoring.vector_HK is not None or (dropout and on_cpu):  # the kernel has neither
        return attend_explicit(query_BHTK, key_BHSK, value_BHSV, mask, causal, scoring, dropout)
    if on_cpu and is_added(mask):
        return attend_in_step(query_BHTK, key_BHSK, value_BHSV, mask, scoring.scale)
    if causal and mask is not None:
        mask, causal = mask & causal_mask(query_BHTK.shape[2], key_BHSK.shape[2], query_BHTK.device), False
    output = F.scaled_dot_product_attention(
        query_BHTK, key_BHSK, value_BHSV, mask, dropout_p=dropout, is_causal=causal, scale=scoring.scale
    )
    if mask is None or is_added(mask):
        return output
    blind = ~mask.any(-1, keepdim=True)
    # The look is cheap on a CPU; elsewhere it would make the host wait.
    if output.device.type == "cpu" and not bool(blind.any()):
        return output
    return output.masked_fill(blind, 0.0)


def attention_weights(
    query_BHTK: Tensor, key_BHSK: Tensor, mask: Tensor | None, causal: bool, scoring: Score
) -> Tensor:
    """The softmax of the paper's equation 1, with rows of zeros where no key may be seen."""
    scores_BHTS = scoring(query_BHTK, key_BHSK)
    if causal:
        future = causal_mask(query_BHTK.shape[2], key_BHSK.shape[2], query_BHTK.device)
        mask = future if mask is None else mask & future
    if mask is None:
        return scores_BHTS.softmax(-1)
    if is_added(mask):
        return (scores_BHTS + mask).softmax(-1)
    # The lowest finite number, not -inf: a row without any key must have a gradient, and no NaN.
    weights_BHTS = scores_BHTS.masked_fill(~mask, torch.finfo(scores_BHTS.dtype).min).softmax(-1)
    return weights_BHTS * mask


def attend_explicit(
    query_BHTK: Tensor,
    key_BHSK: Tensor,
    value_BHSV: Tensor,
    mask: Tensor | None,
    causal: bool,
    scoring: Score,
    dropout: float,
) -> Tensor:
    """The same as `attend_fused`, written out, so that the weights can be had."""
    weights_BHTS = attention_weights(query_BHTK, key_BHSK, mask, causal, scoring)
    dropped_BHTS = byte_dropout(weights_BHTS, dropout) if dropout else weights_BHTS
    return mixed(dropped_BHTS, value_BHSV, in_step=is_added(mask))


def causal_mask(query_length: int, key_length: int, device: torch.device) -> Tensor:
    """True where key position <= query position (paper, 3.2.3)."""
    return torch.ones(query_length, key_length, dtype=torch.bool, device=device).tril()


def window_mask(query_positions: Tensor, key_positions: Tensor, window: int) -> Tensor:
    """True where a key is fewer than `window` positions away from its query."""
    return (query_positions[..., :, None] - key_positions[..., None, :]).abs() < window


def split_heads(packed_BTX: Tensor, *parts: tuple[int, int]) -> list[Tensor]:
    """Cut the last axis into parts of (heads, width) each: B T (H K + G K + G V) -> B H T K, ..."""
    B, T, _ = packed_BTX.shape
    pieces = packed_BTX.split([heads * width for heads, width in parts], dim=-1)
    return [piece.view(B, T, heads, width).transpose(1, 2) for piece, (heads, width) in zip(pieces, parts, strict=True)]


class AttentionLayer(nn.Module):
    """A layer that attends by a function that it holds, so that another one can take its place."""

    def __init__(self) -> None:
        super().__init__()
        self.attend: Attend = attend_fused


class MultiHeadAttention(AttentionLayer):
    """What self- and cross-attention share: the heads' widths, `attend`, and the output projection."""

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__()
        if config.key_width is None and width % config.num_heads:
            raise UserError(
                f"a width of {width} cannot be split over {config.num_heads} heads: "
                "choose num_heads that divides the width, or set key_width and value_width"
            )
        self.num_heads = config.num_heads
        self.num_key_value_heads = config.num_key_value_heads or config.num_heads
        self.key_width = config.key_width or width // config.num_heads
        self.value_width = config.value_width or self.key_width
        self.scale = 1.0 / math.sqrt(self.key_width) if config.scaled else 1.0
        self.dropout = config.dropout
        self.scoring_vector: nn.Parameter | None = None
        if config.scoring == "additive":
            self.scoring_vector = nn.Parameter(torch.randn(self.num_heads, self.key_width) * self.key_width**-0.5)
        self.output_projection = nn.Linear(self.num_heads * self.value_width, width, config.bias)

    def mix(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend in every head, and join the heads: B T (H V)."""
        shared = self.num_heads // self.num_key_value_heads
        if shared > 1:
            key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
        dropout = self.dropout if self.training else 0.0
        scoring = Scoring(self.scale, self.scoring_vector)
        heads_BHTV = self.attend(query, key, value, mask, causal, scoring, dropout)
        return heads_BHTV.transpose(1, 2).flatten(2)


class StepCache(Protocol):
    """What a step of self-attention needs of a cache: N groups of Q queries, which see some of the same S keys.

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
        """Store what is new, and give all keys and values."""


class SelfAttention(MultiHeadAttention):
    """Attention of a sequence to itself; the three input projections are one matrix, hence one product.

    With a `window`, a position sees only those fewer than so many positions away.
    """

    def __init__(
        self, width: int, config: AttentionConfig, positions: PositionScheme, window: int | None = None
    ) -> None:
        super().__init__(width, config)
        # Held in a list: the scheme is shared by all layers, and belongs to the model.
        self._positions = [positions]
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

    def forward(self, x_BTD: Tensor, positions: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend within whole sequences, whose positions are T, or B T where they differ between rows."""
        query, key, value = self.project(x_BTD, positions)
        return self.attend_within(query, key, value, positions, mask, causal)

    def attend_within(
        self, query: Tensor, key: Tensor, value: Tensor, positions: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """Attend with queries, keys and values made by `project`."""
        if self.window is not None:
            near = window_mask(positions, positions, self.window)
            near = near if near.dim() == 2 else near[:, None]
            mask = near if mask is None else mask & near
        return self.output_projection(self.mix(query, key, value, mask, causal))

    def step(self, x_RD: Tensor, cache: StepCache) -> Tensor:
        """Attend from one new position a row to the positions in the cache, which takes in the new one."""
        packed_NQX = cache.spread(self.query_key_value_projection(x_RD))
        query, key, value = self._by_head(packed_NQX, cache.positions_NQ)
        key, value = cache.append(key, value)
        mask = cache.mask_N1QS
        if self.window is not None:
            near = window_mask(cache.positions_NQ, cache.key_positions, self.window)
            mask = mask.masked_fill(~near[:, None], -torch.inf)
        return self.output_projection(cache.collect(self.mix(query, key, value, mask, False)))


class CrossAttention(MultiHeadAttention):
    """Attention from a sequence to the encoder's output, whose keys and values are computed once."""

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__(width, config)
        shared = self.num_key_value_heads
        self.parts = ((shared, self.key_width), (shared, self.value_width))
        self.query_projection = nn.Linear(width, self.num_heads * self.key_width, config.bias)
        self.key_value_projection = nn.Linear(width, shared * (self.key_width + self.value_width), config.bias)

    def keys_values(self, memory_BSD: Tensor) -> list[Tensor]:
        """The keys and values of the encoder's output, by head."""
        return split_heads(self.key_value_projection(memory_BSD), *self.parts)

    def forward(self, x_BTD: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attend to keys and values made by `keys_values`."""
        return self.output_projection(self._mixed(self.query_projection(x_BTD), key, value, mask))

    def step(self, x_RD: Tensor, cache: StepCache, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Attend from one new position a row, where the rows of a group share keys and values."""
        query_NQX = cache.spread(self.query_projection(x_RD))
        return self.output_projection(cache.collect(self._mixed(query_NQX, key, value, mask)))

    def _mixed(self, query_BTX: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        (query,) = split_heads(query_BTX, (self.num_heads, self.key_width))
        return self.mix(query, key, value, mask, False)
