"""The block of XLNet, which transforms a stream of contents and a stream of queries with the same parameters."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.layers.blocks import PostNorm, StackConfig
from heedful.layers.feed_forward import FeedForward
from heedful.layers.kv_cache import LayerCache
from heedful.layers.relative_attention import RelativeAttention, Seen, Sight


class RelativeBlock(nn.Module):
    """Relative attention, then the feed-forward network."""

    def __init__(self, width: int, config: StackConfig, segments: bool) -> None:
        super().__init__()
        self.attention = RelativeAttention(width, config.attention, segments)
        self.attention_residual = PostNorm(width, config)
        self.feed_forward = FeedForward(width, config.feed_forward)
        self.feed_forward_residual = PostNorm(width, config)

    def forward(self, x_BTD: Tensor, query_BHTK: Tensor, seen: Seen, sight: Sight) -> Tensor:
        """Transform a stream whose queries, and whose keys and values, are there already."""
        x_BTD = self.attention_residual(x_BTD, lambda _: self.attention(query_BHTK, seen, sight))
        return self.feed_forward_residual(x_BTD, self.feed_forward)

    def step(self, x_R2D: Tensor, cache: LayerCache, distances_HXK: Tensor, sight: Sight) -> Tensor:
        """Transform the content of one new position a row, and the query at the position behind it.

        Both see the same keys, those up to the new one, so that they are two queries of one attention.
        """
        query, key, value = self.attention.contents(x_R2D[:, :1])
        seen = Seen(*cache.append(key, value), distances_HXK)
        queries_RH2K = torch.cat([query, self.attention.queries(x_R2D[:, 1:])], dim=2)
        return self(x_R2D, queries_RH2K, seen, sight)


def step_sight(cache: LayerCache) -> Sight:
    """What a step sees, where place d of a table is distance d, and rows are at positions of their own."""
    positions_R1, num_keys = cache.positions_NQ, cache.key_RHSK.shape[2]
    places_S = torch.arange(num_keys, device=positions_R1.device)
    distances_R12S = torch.stack([positions_R1 - places_S, positions_R1 + 1 - places_S], dim=1)[:, None].clamp(min=0)

    def align(scores_RH2X: Tensor) -> Tensor:
        return scores_RH2X.gather(-1, distances_R12S.expand(-1, scores_RH2X.shape[1], -1, -1))

    return Sight("query", align, cache.mask_N1QS)
