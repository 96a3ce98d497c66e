"""Exact attention weights, recorded from a view of a model that shares its parameters and is run once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from heedful.errors import UserError, not_numbers
from heedful.inspection.attention.maps import AttentionMap, Kind
from heedful.inspection.trace.views import view_of
from heedful.layers.attention import Attend, AttentionLayer, Score, attention_weights
from heedful.layers.relative_attention import RelativeAttention
from heedful.machine.devices import flushed_denormals, one_thread

Model = TypeVar("Model", bound=nn.Module)


class RecordingAttend:
    """Explicit attention that keeps the weights of its last call."""

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
        """Attend, and keep the weights B H T S; a view that records does not train, so nothing is dropped."""
        weights_BHTS = attention_weights(query_BHTK, key_BHSK, mask, causal, scoring)
        self.weights = weights_BHTS.detach()
        return weights_BHTS @ value_BHSV


def recording_view(model: Model) -> tuple[Model, dict[str, RecordingAttend]]:
    """A second view of the same model, on the same parameters, and its recorders by the attention layer's name.

    The model itself does not change, so that others can go on using it.
    """
    view = view_of(model)
    recorders = {}
    for name, module in view.named_modules():
        if isinstance(module, AttentionLayer):
            module.attend = recorders[name] = RecordingAttend()
        elif isinstance(module, RelativeAttention):
            for stream in module.attend:
                module.attend[stream] = recorders[f"{name}.{stream}"] = RecordingAttend()
    return view, recorders


@runtime_checkable
class Attending(Protocol):
    """A model that names the kinds of its attention."""

    def attention_functions(self) -> Mapping[str, Sequence[Attend]]:
        """The attention function that each layer holds, by the kind of attention."""


def recorders_by_kind(view: nn.Module) -> dict[str, list[RecordingAttend]]:
    """The recorders of a view, layer by layer, for each kind of attention that its model names."""
    kinds = view.attention_functions() if isinstance(view, Attending) else {}
    return {kind: [each for each in found if isinstance(each, RecordingAttend)] for kind, found in kinds.items()}


# A thousand tokens have a million weights per head, and nobody could look at a larger picture.
MOST_TOKENS = 1024


class Recording(Generic[Model]):
    """A view of a model that shares its parameters, and the weights of what it computes."""

    def __init__(self, model: Model) -> None:
        self.view, _ = recording_view(model)
        self._recorders = recorders_by_kind(self.view)

    def maps(self, kind: Kind, of_model: str, queries: str, keys: str) -> list[AttentionMap]:
        """The maps of all layers of a kind that the model names; none if it does not have that kind."""
        found = []
        for layer, recorder in enumerate(self._recorders.get(of_model, [])):
            if recorder.weights is not None:
                weights_HTS = recorder.weights[0].float().cpu().numpy()
                if np.isnan(weights_HTS).any():
                    raise not_numbers("attention weights")
                found.append(AttentionMap(kind, layer, queries, keys, weights_HTS))
        return found


@contextmanager
def one_look() -> Iterator[None]:
    """How a recording computes: as decoding does, on one thread and without gradients."""
    with one_thread(), flushed_denormals(), torch.inference_mode():
        yield


def check_length(tokens: int, longest: int | None, what: str = "text", advice: str = "give a shorter one") -> None:
    """Raise a UserError for a text that the model cannot take in one piece, or that is too long to look into."""
    limit = MOST_TOKENS if longest is None else min(longest, MOST_TOKENS)
    if tokens > limit:
        raise UserError(f"the {what} has {tokens:,} tokens, and at most {limit:,} can be looked into: {advice}")
