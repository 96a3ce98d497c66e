"""Exact attention weights, recorded from a view of a model that shares its parameters."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import Tensor, nn

from heedful.layers.attention import AttentionLayer, Score, attention_weights
from heedful.layers.relative_attention import RelativeAttention

Model = TypeVar("Model", bound=nn.Module)


class RecordingAttend:
    """The explicit attention, which keeps the weights of its last call."""

    def __init__(self) -> None:
        self.weights: Tensor | None = None

    def __call__(
        self,
        query_BHTK: Tensor,
        key_BHSK: Tensor,
        value_BHSV: Tensor,
        mask: Tensor | None,
        causal: bool,
        scoring: Score,
        dropout: float,
    ) -> Tensor:
        """Attend, and keep the weights B H T S; a view that records does not train, so that nothing is dropped."""
        weights_BHTS = attention_weights(query_BHTK, key_BHSK, mask, causal, scoring)
        self.weights = weights_BHTS.detach()
        return weights_BHTS @ value_BHSV


def recording_view(model: Model) -> tuple[Model, dict[str, RecordingAttend]]:
    """The same model once more, on the same parameters, and its recorders by the attention layer's name.

    The model itself is left as it is, so that others may go on using it.
    """
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    view = copy.deepcopy(model, shared)
    recorders = {}
    for name, module in view.named_modules():
        if isinstance(module, AttentionLayer):
            module.attend = recorders[name] = RecordingAttend()
        elif isinstance(module, RelativeAttention):
            for stream in module.attend:
                module.attend[stream] = recorders[f"{name}.{stream}"] = RecordingAttend()
    return view, recorders
