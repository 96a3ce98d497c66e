"""The scores of additive attention (Bahdanau et al., 2015), without a hidden tensor for all pairs of query and key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

# A piece of the pairs has about this many elements, so that it stays in a CPU's cache; other devices take larger ones.
ELEMENTS_PER_PIECE = 2**17
# exp(2 query) exp(2 key) neither overflows nor underflows in fp32 if neither is larger than this.
SAFE_VALUE = 20.0


def plain_additive_scores(query_BHTK: Tensor, key_BHSK: Tensor, vector_HK: Tensor) -> Tensor:
    """vector . tanh(query + key) for all pairs B H T S, straight from the formula."""
    hidden_BHTSK = torch.tanh(query_BHTK[:, :, :, None] + key_BHSK[:, :, None])
    return (hidden_BHTSK @ vector_HK[:, None, :, None])[..., 0]


class _AdditiveScores(torch.autograd.Function):
    """Goes through the sentences a few at a time, and again in the backward pass.

    With r = 1 / (exp(2 query) exp(2 key) + 1), tanh(query + key) is 1 - 2 r, and its derivative 4 r (1 - r): a pair
    costs a product and a quotient instead of a tanh.
    """

    @staticmethod
    def forward(ctx: Any, query_BHTK: Tensor, key_BHSK: Tensor, vector_HK: Tensor) -> Tensor:
        ctx.save_for_backward(query_BHTK, key_BHSK, vector_HK)
        B, H, T, _ = query_BHTK.shape
        scores_BHTS = query_BHTK.new_empty(B, H, T, key_BHSK.shape[2])
        for piece, r in _pieces(query_BHTK, key_BHSK):
            scores_BHTS[piece] = r.mul_(vector_HK[:, None, None]).sum(-1)
        return scores_BHTS.mul_(-2.0).add_(vector_HK.sum(-1)[:, None, None])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query_BHTK, key_BHSK, vector_HK = ctx.saved_tensors
        gradient_BHTS1 = gradients[0][..., None]
        query_gradient, key_gradient = torch.empty_like(query_BHTK), torch.empty_like(key_BHSK)
        r_total_HK = torch.zeros_like(vector_HK)
        for piece, r in _pieces(query_BHTK, key_BHSK):
            weighted = r * gradient_BHTS1[piece]
            r_total_HK += weighted.sum((0, 2, 3))
            slope = weighted.addcmul_(weighted, r, value=-1.0)
            query_gradient[piece], key_gradient[piece] = slope.sum(3), slope.sum(2)
        factor_HK = 4.0 * vector_HK[:, None]
        vector_gradient = gradient_BHTS1.sum((0, 2, 3)) - 2.0 * r_total_HK
        return query_gradient.mul_(factor_HK), key_gradient.mul_(factor_HK), vector_gradient


def _pieces(query_BHTK: Tensor, key_BHSK: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """A few sentences at a time, with r B H T S K of their pairs."""
    pairs = query_BHTK[0].numel() * key_BHSK.shape[2]
    elements = ELEMENTS_PER_PIECE if query_BHTK.device.type == "cpu" else 256 * ELEMENTS_PER_PIECE
    size = max(1, elements // max(1, pairs))
    query_powers, key_powers = torch.exp(2.0 * query_BHTK), torch.exp(2.0 * key_BHSK)
    for start in range(0, len(query_BHTK), size):
        piece = slice(start, start + size)
        product = query_powers[piece, :, :, None] * key_powers[piece, :, None]
        yield piece, product.add_(1.0).reciprocal_()


def additive_scores(query_BHTK: Tensor, key_BHSK: Tensor, vector_HK: Tensor) -> Tensor:
    """vector . tanh(query + key) for all pairs B H T S."""
    query_BHTK, key_BHSK = query_BHTK.to(vector_HK), key_BHSK.to(vector_HK)
    largest = max(float(x.detach().abs().max()) for x in (query_BHTK, key_BHSK))
    if largest > SAFE_VALUE:
        return plain_additive_scores(query_BHTK, key_BHSK, vector_HK)
    with torch.autocast(query_BHTK.device.type, enabled=False):
        return _AdditiveScores.apply(query_BHTK, key_BHSK, vector_HK)  # type: ignore[no-untyped-call]
