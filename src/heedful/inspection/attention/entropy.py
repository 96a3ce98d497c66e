"""How sharply a model attends: the entropy of its attention weights, beside the largest that it could be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor, nn

from heedful.inspection.attention.recording import recording_view

Model = TypeVar("Model", bound=nn.Module)


@torch.inference_mode()
def attention_entropy(model: Model, read: Callable[[Model], Iterator[None]]) -> dict[str, list[float]]:
    """For each kind of attention the entropy of each layer, from 0 (all on one token) to 1 (the same on all).

    `read` lets a model read some examples, one after the other; it is given a view of the model that records.
    """
    view, recorders = recording_view(model)
    sums: dict[str, Tensor] = {}
    for _ in read(view):
        for name, recorder in recorders.items():
            if recorder.weights is not None:
                sums[name] = sums.get(name, 0.0) + entropy_and_largest(recorder.weights.cpu())
    layers: dict[str, list[float]] = defaultdict(list)
    for name, (entropy, largest) in sums.items():
        layers[kind_of(name)].append(float(entropy / largest) if largest > 0 else 0.0)
    return dict(layers)


def entropy_and_largest(weights_BHTS: Tensor) -> Tensor:
    """The entropy summed over all queries, and what it would be if each attended alike to all that it sees."""
    entropy = torch.special.entr(weights_BHTS).sum()
    return torch.stack([entropy, (weights_BHTS > 0).sum(-1).log().sum()])


def kind_of(name: str) -> str:
    """The kind of attention that a layer of that name does."""
    first, *_, last = name.split(".")
    if last == "cross_attention":
        return "cross"
    if last in ("content", "query"):
        return last
    return "self" if first == "blocks" else first
