"""Attention within a window whose cost grows with the window, not with the text: computed in blocks."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.layers.masks import window_mask
from heedful.layers.multi_head_attention import SelfAttention


def attend_in_blocks(attention: SelfAttention, x_BTD: Tensor, window: int, *, causal: bool) -> Tensor:
    """The output of a self-attention with that window, from blocks of the window's size and their neighbours.

    heedful's own layer hides what is outside a window, but still computes it. The length must be a multiple of the
    window.
    """
    T = x_BTD.shape[1]
    assert T % window == 0, (T, window)
    query, key, value = attention.project(x_BTD, torch.arange(T))
    blocks = T // window
    sides = (1, 0) if causal else (1, 1)

    def neighbours(x_BHTK: Tensor) -> Tensor:
        padded = F.pad(x_BHTK, (0, 0, sides[0] * window, sides[1] * window))
        return padded.unfold(2, (1 + sum(sides)) * window, window).movedim(-1, 3)

    places = torch.arange(T)
    key_places = F.pad(places, (sides[0] * window, sides[1] * window), value=-window)
    key_places_NS = key_places.unfold(0, (1 + sum(sides)) * window, window)
    query_places_NW = places.view(blocks, window)
    mask_NWS = window_mask(query_places_NW, key_places_NS, window) & (key_places_NS >= 0)[:, None]
    if causal:
        mask_NWS &= key_places_NS[:, None] <= query_places_NW[:, :, None]
    query_BHNWK = query.unflatten(2, (blocks, window))
    mixed = F.scaled_dot_product_attention(
        query_BHNWK, neighbours(key), neighbours(value), mask_NWS, scale=attention.scale
    )
    return attention.output_projection(mixed.flatten(2, 3).transpose(1, 2).flatten(2))
