"""Scaled dot-product attention (paper, 3.2.1), by a fused kernel and written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.layers.additive_scores import additive_scores
from heedful.layers.blockwise_attention import attend_in_step, mixed
from heedful.layers.dropout import dropout as byte_dropout
from heedful.layers.masks import causal_mask, is_added


@dataclass(frozen=True)
class Scoring:
    """How well a key suits a query: their scaled dot product (equation 1), or the additive form of Bahdanau et
    al. (2015), vector . tanh(query + key), which the paper compares it with (3.2.1).

    A `bias`, H T S or B H T S, is added to that, for the positions.
    """

    scale: float
    vector_HK: Tensor | None = None
    bias: Tensor | None = None

    def __call__(self, query_BHTK: Tensor, key_BHSK: Tensor) -> Tensor:
        """The scores B H T S before masking."""
        if self.vector_HK is None:
            scores_BHTS = (query_BHTK * self.scale) @ key_BHSK.transpose(-1, -2)
        else:
            scores_BHTS = additive_scores(query_BHTK, key_BHSK, self.vector_HK)
        return scores_BHTS if self.bias is None else scores_BHTS + self.bias


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
    """Attention by torch's fused kernel; `mask` is True where a query may see a key, or is added to the scores.

    With a mask that is added, every query must see at least one key.
    """
    on_cpu = query_BHTK.device.type == "cpu"
    if scoring.vector_HK is not None or (dropout and on_cpu):  # the kernel has neither
        return attend_explicit(query_BHTK, key_BHSK, value_BHSV, mask, causal, scoring, dropout)
    if on_cpu and is_added(mask):
        return attend_in_step(query_BHTK, key_BHSK, value_BHSV, mask, scoring.scale, scoring.bias)
    if causal and (mask is not None or scoring.bias is not None):  # the kernel takes one of the two
        future = causal_mask(query_BHTK.shape[2], key_BHSK.shape[2], query_BHTK.device)
        mask, causal = future if mask is None else mask & future, False
    added = mask if scoring.bias is None else _with_mask(scoring.bias.to(query_BHTK.dtype), mask)
    output = F.scaled_dot_product_attention(
        query_BHTK, key_BHSK, value_BHSV, added, dropout_p=dropout, is_causal=causal, scale=scoring.scale
    )
    if mask is None or is_added(mask):
        return output
    blind = ~mask.any(-1, keepdim=True)
    # This check is cheap on a CPU; elsewhere it would make the host wait, and a compiler cannot follow it.
    if output.device.type == "cpu" and not torch.compiler.is_compiling() and not bool(blind.any()):
        return output
    return output.masked_fill(blind, 0.0)


def _with_mask(bias: Tensor, mask: Tensor | None) -> Tensor:
    """A bias on the scores that also hides what a mask hides."""
    if mask is None:
        return bias
    # The lowest finite number, not -inf: a row without any key must have a gradient, and no NaN.
    return bias + mask if is_added(mask) else bias.masked_fill(~mask, torch.finfo(bias.dtype).min)


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
    """The same as `attend_fused`, written out, so that the weights are available."""
    weights_BHTS = attention_weights(query_BHTK, key_BHSK, mask, causal, scoring)
    dropped_BHTS = byte_dropout(weights_BHTS, dropout) if dropout else weights_BHTS
    return mixed(dropped_BHTS, value_BHSV, in_step=is_added(mask))


class AttentionLayer(nn.Module):
    """A layer that holds the function it attends with, so that another can take its place."""

    def __init__(self) -> None:
        super().__init__()
        self.attend: Attend = attend_fused
