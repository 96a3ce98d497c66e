"""How sharply a model attends: the entropy of its attention weights, relative to its largest possible value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch
from torch import Tensor, nn

from heedful.inspection.attention.recording import recorders_by_kind, recording_view

Model = TypeVar("Model", bound=nn.Module)


@torch.inference_mode()
def attention_entropy(model: Model, read: Callable[[Model], Iterator[None]]) -> dict[str, list[float]]:
    """For each kind of attention, the entropy of each layer, from 0 (all on one token) to 1 (the same on all).

    `read` makes a model read some examples, one after the other; it gets a view of the model that records.
    """
    view, _ = recording_view(model)
    recorders = recorders_by_kind(view)
    sums: dict[str, dict[int, Tensor]] = {}
    for _ in read(view):
        for kind, layers in recorders.items():
            for layer, recorder in enumerate(layers):
                if recorder.weights is not None:
                    of_kind = sums.setdefault(kind, {})
                    of_kind[layer] = of_kind.get(layer, 0.0) + entropy_and_largest(recorder.weights.cpu())
    return {kind: [_share(*each) for each in of_kind.values()] for kind, of_kind in sums.items()}


def _share(entropy: Tensor, largest: Tensor) -> float:
    return float(entropy / largest) if largest > 0 else 0.0


def entropy_and_largest(weights_BHTS: Tensor) -> Tensor:
    """The entropy summed over all queries, and what it would be if each attended equally to every key it sees."""
    entropy = torch.special.entr(weights_BHTS).sum()
    return torch.stack([entropy, (weights_BHTS > 0).sum(-1).log().sum()])
