"""Attention rollout (Abnar and Zuidema, 2020): how much of each input is in each position after all layers.

A layer keeps half of its input, through its residual connection, and mixes the other half by the mean of its heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from heedful.inspection.attention.maps import AttentionMap, Kind


Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Rollout:
    """The shares T S of the inputs in the positions after the last layer, for the maps of one kind."""

    kind: Kind
    queries: str
    keys: str
    weights: Matrix


def rollouts(maps: Sequence[AttentionMap]) -> list[Rollout]:
    """One for each kind of attention that has residual connections around it."""
    layers: dict[Kind, list[Matrix]] = {}
    names: dict[Kind, tuple[str, str]] = {}
    for each in maps:
        layers.setdefault(each.kind, []).append(each.weights.mean(0, dtype=np.float64))
        names[each.kind] = (each.queries, each.keys)
    found: dict[Kind, Matrix] = {}
    for kind, matrices in layers.items():
        if kind == "query":
            found[kind] = _of_queries(matrices, layers.get("content", []))
        elif kind != "cross":
            found[kind] = _of_a_stack(matrices)[-1]
        elif "decoder" in layers:  # the attention of a recurrent model has no residual connection
            found[kind] = _across(layers["encoder"], layers["decoder"], matrices)
    return [Rollout(kind, *names[kind], weights) for kind, weights in found.items()]


def _of_a_stack(layers: list[Matrix]) -> list[Matrix]:
    """The shares before the first layer, and after each."""
    shares = [np.eye(layers[0].shape[1])]
    for matrix in layers:
        shares.append(0.5 * shares[-1] + 0.5 * matrix @ shares[-1])
    return shares


def _across(encoder: list[Matrix], decoder: list[Matrix], cross: list[Matrix]) -> Matrix:
    """The shares of source tokens in the decoder's positions; the remainder to 1 is that of the target so far."""
    memory = _of_a_stack(encoder)[-1]
    shares = np.zeros((decoder[0].shape[0], memory.shape[1]))
    for within, to_source in zip(decoder, cross, strict=True):
        shares = 0.5 * shares + 0.5 * within @ shares
        shares = 0.5 * shares + 0.5 * to_source @ memory
    return shares


def _of_queries(queries: list[Matrix], contents: list[Matrix]) -> Matrix:
    """The shares of contents in the query stream, which begins without any; the remainder to 1 is the place itself."""
    # No query sees the last layer's contents: a model leaves them out.
    seen = _of_a_stack(contents)[: len(queries)] if contents else [np.eye(queries[0].shape[1])]
    shares = np.zeros_like(queries[0])
    for matrix, content in zip(queries, seen, strict=True):
        shares = 0.5 * shares + 0.5 * matrix @ content
    return shares
