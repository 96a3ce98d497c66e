"""Attention written out, step by step, with a tap at each step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from heedful.layers.additive_scores import additive_scores
from heedful.layers.attention import Scoring
from heedful.layers.masks import causal_mask
from heedful.layers.relative_attention import RelativeScoring

# Takes the last part of a point's name, the letters of its axes and its tensor; returns the tensor to go on with.
Place = Callable[[str, str, Tensor], Tensor]


class TappedAttend:
    """Equation 1 of the paper: scores, scaling, what positions add, mask, softmax, mixed values.

    Groups of `shared` heads have the same keys and values. Keys rotated by their positions are seen after the rotation.
    """

    def __init__(self, tap: Place, shared: int, turned: bool) -> None:
        self.tap, self.shared, self.turned = tap, shared, turned

    def __call__(
        self,
        query_BHTK: Tensor,
        key_BHSK: Tensor,
        value_BHSV: Tensor,
        mask: Tensor | None,
        causal: bool,
        scoring: Scoring,
        dropout: float,
    ) -> Tensor:
        """Attend; a view that is looked into does not train, so that nothing is dropped."""
        if self.turned:
            query_BHTK = self.tap("turned_queries", "BHTK", query_BHTK)
            key_BHSK = self.tap("turned_keys", "BGSK", key_BHSK[:, :: self.shared])
            key_BHSK = key_BHSK.repeat_interleave(self.shared, 1)
        if scoring.vector_HK is None:
            scores_BHTS = self.tap("scores", "BHTS", query_BHTK @ key_BHSK.transpose(-1, -2))
            scores_BHTS = self.tap("scaled", "BHTS", scores_BHTS * scoring.scale)
        else:
            scores_BHTS = self.tap("scores", "BHTS", additive_scores(query_BHTK, key_BHSK, scoring.vector_HK))
        if scoring.bias is not None:
            bias = self.tap("bias", "BHTS"[-scoring.bias.dim() :], scoring.bias)
            scores_BHTS = self.tap("biased", "BHTS", scores_BHTS + bias)
        return mix(self.tap, scores_BHTS, value_BHSV, mask, causal)


class TappedRelativeAttend:
    """The same for XLNet, whose scores are a sum by content, by distance, and by segment."""

    def __init__(self, tap: Place) -> None:
        self.tap = tap

    def __call__(
        self,
        query_BHTK: Tensor,
        key_BHSK: Tensor,
        value_BHSV: Tensor,
        mask: Tensor | None,
        causal: bool,
        scoring: RelativeScoring,
        dropout: float,
    ) -> Tensor:
        """Attend; a view that is looked into does not train, so that nothing is dropped."""
        tap, layer, sight = self.tap, scoring.attention, scoring.sight
        query_BHTK, key_BHSK = tap("queries", "BHTK", query_BHTK), tap("keys", "BHSK", key_BHSK)
        value_BHSV = tap("values", "BHSV", value_BHSV)
        distances_HXK = tap("distances", "HXK", scoring.distances_HXK)
        by_content = (query_BHTK + layer.content_bias[:, None]) @ key_BHSK.transpose(-1, -2)
        by_distance = sight.align((query_BHTK + layer.position_bias[:, None]) @ distances_HXK.transpose(1, 2))
        scores_BHTS = tap("content_scores", "BHTS", by_content) + tap("distance_scores", "BHTS", by_distance)
        if sight.other_segment_B1TS is not None:
            assert layer.segment_bias is not None and layer.segment_embedding is not None
            by_segment = query_BHTK + layer.segment_bias[:, None]
            same, other = torch.einsum("bhtk,chk->cbht", by_segment, layer.segment_embedding).unbind()
            of_segments = torch.where(sight.other_segment_B1TS, other[..., None], same[..., None])
            scores_BHTS = scores_BHTS + tap("segment_scores", "BHTS", of_segments)
        scores_BHTS = tap("scaled", "BHTS", tap("scores", "BHTS", scores_BHTS) * layer.scale)
        return mix(tap, scores_BHTS, value_BHSV, mask, causal)


def mix(tap: Place, scores_BHTS: Tensor, value_BHSV: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Hide what a mask hides, take the softmax, and mix the values by it; a query that sees no key gets zeros."""
    if causal:
        future = causal_mask(scores_BHTS.shape[-2], scores_BHTS.shape[-1], scores_BHTS.device)
        mask = future if mask is None else mask & future
    if mask is not None:
        mask_BHTS = tap("mask", "BHTS", mask.expand(scores_BHTS.shape))
        scores_BHTS = tap("masked", "BHTS", scores_BHTS.masked_fill(~mask_BHTS, -torch.inf))
    weights_BHTS = scores_BHTS.softmax(-1)
    if mask is not None:
        weights_BHTS = weights_BHTS.masked_fill(~mask_BHTS.any(-1, keepdim=True), 0.0)
    weights_BHTS = tap("weights", "BHTS", weights_BHTS)
    return tap("mixed", "BHTV", weights_BHTS @ value_BHSV)
