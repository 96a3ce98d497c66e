"""A second model on the parameters of another, whose parts can be changed without changing the other."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

Model = TypeVar("Model", bound=nn.Module)


def view_of(model: Model) -> Model:
    """A second instance of the model, on the same parameters and tables, in evaluation mode."""
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, shared).eval()
