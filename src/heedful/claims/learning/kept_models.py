"""Trained models whose weights are kept, so that claims share them and a stopped run does not train them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from safetensors.torch import load_file
from torch import nn

from heedful.claims.workbench import Shelf
from heedful.models.weights_file import load_parameters, parameter_tensors
from heedful.weights_seal import unsealed
from heedful.weights_writer import stream_of, write_weights_file

Model = TypeVar("Model", bound=nn.Module)


def kept_model(shelf: Shelf, made_from: Any, model: Model, train: Callable[[Model], object]) -> Model:
    """A model with its kept weights; if there are none, it is trained first."""
    path = shelf.path("model", made_from, ".safetensors")
    if not path.is_file():
        train(model)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_weights_file(path, stream_of(parameter_tensors(model)), unsealed(None))
    load_parameters(model, load_file(path))
    return model.eval()
