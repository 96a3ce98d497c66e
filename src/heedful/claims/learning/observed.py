"""What passes through a model's attention, seen in a copy whose layers report their inputs."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.layers.attention import Attend, AttentionLayer, Score, attend_explicit, attention_weights

# The layer's number, then the queries, keys, values, mask, causal and scoring of a call of attention.
Seen = Callable[[int, Tensor, Tensor, Tensor, Tensor | None, bool, Score], None]


def watched(model: nn.Module, see: Seen) -> nn.Module:
    """A copy of a model in evaluation mode, whose attention layers report their inputs, with their numbers."""
    view = copy.deepcopy(model).eval()
    layers = [each for each in view.modules() if isinstance(each, AttentionLayer)]
    for number, layer in enumerate(layers):
        layer.attend = _watching(number, see)
    return view


def _watching(number: int, see: Seen) -> Attend:
    def attend(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scoring: Score, dropout: float
    ) -> Tensor:
        see(number, query, key, value, mask, causal, scoring)
        return attend_explicit(query, key, value, mask, causal, scoring, dropout)

    return attend


@torch.no_grad()
def queries_and_keys(model: nn.Module, *inputs: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The queries B H T K and keys B H S K of each attention layer."""
    found: list[tuple[Tensor, Tensor]] = []
    watched(model, lambda number, query, key, *rest: found.append((query, key)))(*inputs)
    return found


@torch.no_grad()
def weights_of_layers(model: nn.Module, *inputs: Tensor) -> list[Tensor]:
    """The attention weights B H T S of each attention layer."""
    found: list[Tensor] = []

    def see(
        number: int, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool, scoring: Score
    ) -> None:
        found.append(attention_weights(query, key, mask, causal, scoring))

    watched(model, see)(*inputs)
    return found
