"""Attention by relative positions, in two streams, and the block made of it (XLNet; Dai et al., 2019)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.layers.attention import Score, attend_explicit
from heedful.layers.blocks import PostNorm
from heedful.layers.feed_forward import FeedForward
from heedful.layers.kv_cache import LayerCache
from heedful.layers.multi_head_attention import split_heads
from heedful.settings.attention import AttentionConfig
from heedful.settings.stack import StackConfig

Stream = Literal["content", "query"]
STREAMS: tuple[Stream, ...] = ("content", "query")
# From the scores B H T X of a table of distances to the scores B H T S of the keys.
Align = Callable[[Tensor], Tensor]
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool, Score, float], Tensor]


def distance_sinusoids(distances_X: Tensor, width: int) -> Tensor:
    """X D: the sines of all distances, which may be negative, before their cosines."""
    rates = torch.exp(torch.arange(0, width, 2, device=distances_X.device) * (-math.log(10000.0) / width))
    angles = distances_X[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def relative_shift(scores_BHTX: Tensor, num_keys: int) -> Tensor:
    """From scores by distance, the largest one first, to scores by key: row i moves T - i places left.

    Cutting T numbers off the flattened matrix and reading it in rows one shorter does this for all rows.
    """
    T, X = scores_BHTX.shape[-2:]
    return scores_BHTX.flatten(-2)[..., T:].unflatten(-1, (T, X - 1))[..., :num_keys]


@dataclass(frozen=True)
class Sight:
    """How a stream sees the keys: where it may look, and where in the table its distances begin.

    `other_segment` is True for a key of another segment. With a `mapping_BPT`, the stream has only P positions,
    each of which stands at one of the T.
    """

    stream: Stream
    align: Align
    mask: Tensor | None = None
    first_distance: int = 0
    other_segment_B1TS: Tensor | None = None
    mapping_BPT: Tensor | None = None

    def spread(self, query_BHPK: Tensor) -> Tensor:
        """The queries of the stream's positions, each at its place among all T."""
        mapping = self.mapping_BPT
        return query_BHPK if mapping is None else mapping.transpose(1, 2)[:, None] @ query_BHPK

    def picked(self, heads_BHTV: Tensor) -> Tensor:
        """The results at the places of the stream's positions."""
        return heads_BHTV if self.mapping_BPT is None else self.mapping_BPT[:, None] @ heads_BHTV


@dataclass(frozen=True)
class Seen:
    """What the queries of a layer see: keys and values of contents, and keys of distances."""

    key_BHSK: Tensor
    value_BHSV: Tensor
    distances_HXK: Tensor


@dataclass(frozen=True)
class RelativeScoring:
    """The sum of a score by content, one by distance, and one by whether the segments are the same."""

    attention: RelativeAttention
    distances_HXK: Tensor
    sight: Sight

    def __call__(self, query_BHTK: Tensor, key_BHSK: Tensor) -> Tensor:
        """The scores B H T S before masking."""
        attention = self.attention
        scale = attention.scale
        by_content = (query_BHTK + attention.content_bias[:, None]) * scale
        by_distance = (query_BHTK + attention.position_bias[:, None]) * scale
        B, H, T, K = query_BHTK.shape
        # All rows see the same distances: one product per head.
        table_HNX = by_distance.transpose(0, 1).reshape(H, B * T, K) @ self.distances_HXK.transpose(1, 2)
        table_BHTX = table_HNX.unflatten(1, (B, T)).transpose(0, 1)
        scores_BHTS = by_content @ key_BHSK.transpose(-1, -2) + self.sight.align(table_BHTX)
        if self.sight.other_segment_B1TS is None:
            return scores_BHTS
        assert attention.segment_bias is not None and attention.segment_embedding is not None
        by_segment = (query_BHTK + attention.segment_bias[:, None]) * scale
        same, other = torch.einsum("bhtk,chk->cbht", by_segment, attention.segment_embedding).unbind()
        return scores_BHTS + torch.where(self.sight.other_segment_B1TS, other[..., None], same[..., None])


class RelativeAttention(nn.Module):
    """Attention whose scores depend on how far away a key is, not on where it stands.

    Both streams use the same parameters; each has its own `attend`, so that both can be recorded.
    """

    def __init__(self, width: int, config: AttentionConfig, segments: bool) -> None:
        super().__init__()
        heads = config.num_heads
        if config.key_width is None and width % heads:
            raise UserError(f"a width of {width} cannot be split over {heads} heads: choose num_heads that divides it")
        key_width = config.key_width or width // heads
        value_width = config.value_width or key_width
        self.parts = ((heads, key_width), (heads, key_width), (heads, value_width))
        self.scale = 1.0 / math.sqrt(key_width) if config.scaled else 1.0
        self.dropout = config.dropout
        self.attend: dict[Stream, Attend] = {"content": attend_explicit, "query": attend_explicit}
        self.query_key_value_projection = nn.Linear(width, heads * (2 * key_width + value_width), config.bias)
        self.distance_projection = nn.Linear(width, heads * key_width, bias=False)
        self.output_projection = nn.Linear(heads * value_width, width, config.bias)
        self.content_bias = nn.Parameter(torch.zeros(heads, key_width))
        # Random, so that heads begin with different distances: otherwise it takes long until they differ.
        self.position_bias = nn.Parameter(torch.randn(heads, key_width))
        self.segment_bias: nn.Parameter | None = None
        self.segment_embedding: nn.Parameter | None = None
        if segments:
            self.segment_bias = nn.Parameter(torch.zeros(heads, key_width))
            self.segment_embedding = nn.Parameter(torch.randn(2, heads, key_width) * 0.02)

    def contents(self, h_BTD: Tensor, memory_BMD: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """The queries of the content stream, and the keys and values of the memory and of the contents."""
        query, key, value = split_heads(self.query_key_value_projection(h_BTD), *self.parts)
        if memory_BMD is not None:
            old_key, old_value = self._project(memory_BMD, 1, 3)
            key, value = torch.cat([old_key, key], dim=2), torch.cat([old_value, value], dim=2)
        return query, key, value

    def queries(self, g_BPD: Tensor) -> Tensor:
        """The queries of the query stream."""
        return self._project(g_BPD, 0, 1)[0]

    def _project(self, x_BTD: Tensor, first: int, last: int) -> list[Tensor]:
        """Some parts of the packed projection."""
        sizes = [heads * width for heads, width in self.parts]
        rows = slice(sum(sizes[:first]), sum(sizes[:last]))
        packed = self.query_key_value_projection
        bias = None if packed.bias is None else packed.bias[rows]
        return split_heads(F.linear(x_BTD, packed.weight[rows], bias), *self.parts[first:last])

    def distances(self, sinusoids_XD: Tensor) -> Tensor:
        """The keys H X K of distances."""
        heads, width = self.parts[0]
        return self.distance_projection(sinusoids_XD).view(-1, heads, width).transpose(0, 1)

    def forward(self, query_BHTK: Tensor, seen: Seen, sight: Sight) -> Tensor:
        """Attend in every head, join the heads, and project back to the model's width."""
        scoring = RelativeScoring(self, seen.distances_HXK[:, sight.first_distance :], sight)
        dropout = self.dropout if self.training else 0.0
        heads_BHTV = self.attend[sight.stream](
            sight.spread(query_BHTK), seen.key_BHSK, seen.value_BHSV, sight.mask, False, scoring, dropout
        )
        return self.output_projection(sight.picked(heads_BHTV).transpose(1, 2).flatten(2))


class RelativeBlock(nn.Module):
    """Relative attention, then the feed-forward network."""

    def __init__(self, width: int, config: StackConfig, segments: bool) -> None:
        super().__init__()
        self.attention = RelativeAttention(width, config.attention, segments)
        self.attention_residual = PostNorm(width, config)
        self.feed_forward = FeedForward(width, config.feed_forward)
        self.feed_forward_residual = PostNorm(width, config)

    def forward(self, x_BTD: Tensor, query_BHTK: Tensor, seen: Seen, sight: Sight) -> Tensor:
        """Transform a stream whose queries, keys and values are already computed."""
        x_BTD = self.attention_residual(x_BTD, lambda _: self.attention(query_BHTK, seen, sight))
        return self.feed_forward_residual(x_BTD, self.feed_forward)

    def step(self, x_R2D: Tensor, cache: LayerCache, distances_HXK: Tensor, sight: Sight) -> Tensor:
        """Transform the content of one new position per row, and the query at the position after it.

        Both see the same keys, those up to the new one, so they are two queries of one attention.
        """
        query, key, value = self.attention.contents(x_R2D[:, :1])
        seen = Seen(*cache.append(key, value), distances_HXK)
        queries_RH2K = torch.cat([query, self.attention.queries(x_R2D[:, 1:])], dim=2)
        return self(x_R2D, queries_RH2K, seen, sight)


def step_sight(cache: LayerCache) -> Sight:
    """What a step sees, where place d of a table is distance d, and each row is at its own position."""
    positions_R1, num_keys = cache.positions_NQ, cache.key_RHSK.shape[2]
    places_S = torch.arange(num_keys, device=positions_R1.device)
    distances_R12S = torch.stack([positions_R1 - places_S, positions_R1 + 1 - places_S], dim=1)[:, None].clamp(min=0)

    def align(scores_RH2X: Tensor) -> Tensor:
        return scores_RH2X.gather(-1, distances_R12S.expand(-1, scores_RH2X.shape[1], -1, -1))

    return Sight("query", align, cache.mask_N1QS)
