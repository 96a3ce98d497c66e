"""One look into a model: a view of it is run once, and what its attention layers recorded is read off as maps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic

import numpy as np
import torch

from heedful.errors import UserError, not_numbers
from heedful.inspection.attention.attention_map import AttentionMap, Kind
from heedful.inspection.attention.recorder import Model, recording_view
from heedful.machine.devices import flushed_denormals, one_thread

# A thousand tokens have a million weights a head, and a larger picture is none that anybody could look at.
MOST_TOKENS = 1024


class Recording(Generic[Model]):
    """A view of a model that shares its parameters, and the weights of what it computes."""

    def __init__(self, model: Model) -> None:
        self.view, self._recorders = recording_view(model)

    def maps(self, kind: Kind, layers: str, queries: str, keys: str) -> list[AttentionMap]:
        """The maps of a stack's attention layers, whose names are `layers` with a number for `{}`."""
        found = []
        for layer, name in enumerate(dict.fromkeys(layers.format(number) for number in range(len(self._recorders)))):
            recorder = self._recorders.get(name)
            if recorder is not None and recorder.weights is not None:
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
    """Raise a UserError for a text that the model cannot take in one piece, or that is too long to be looked at."""
    limit = MOST_TOKENS if longest is None else min(longest, MOST_TOKENS)
    if tokens > limit:
        raise UserError(f"the {what} has {tokens:,} tokens, and at most {limit:,} can be looked into: {advice}")
