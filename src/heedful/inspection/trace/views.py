"""A second model on the parameters of a first one, whose parts can be changed without touching the first."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

Model = TypeVar("Model", bound=nn.Module)


def view_of(model: Model) -> Model:
    """The same model once more, on the same parameters and tables, in evaluation mode."""
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, shared).eval()
