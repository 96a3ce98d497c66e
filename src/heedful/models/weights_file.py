"""A model's parameters by name, and loading them into a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from heedful.errors import UserError


def parameter_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The parameters by name; one that is used in two places has one name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@torch.no_grad()
def load_parameters(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Copy saved parameters into a model; a name or a shape that does not fit is an error that lists it."""
    for parameter, tensor in _pairs(model, tensors):
        parameter.copy_(tensor)


def adopt_parameters(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """The same without a copy: the parameters become the saved tensors themselves, if these have their type."""
    for parameter, tensor in _pairs(model, tensors):
        parameter.data = tensor.to(parameter.dtype)


def check_shapes(model: nn.Module, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise a UserError unless these are the names and shapes of a model's weights; it may be on the meta device."""
    expected = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    missing, unknown = sorted(expected.keys() - shapes.keys()), sorted(shapes.keys() - expected.keys())
    if missing or unknown:
        raise UserError(
            f"the weights do not fit the model: missing {_some(missing)}; not part of the model {_some(unknown)}"
        )
    for name, shape in expected.items():
        if shape != tuple(shapes[name]):
            raise UserError(f"the weights do not fit the model: {name} is {tuple(shapes[name])}, expected {shape}")


def _pairs(model: nn.Module, tensors: dict[str, Tensor]) -> list[tuple[nn.Parameter, Tensor]]:
    """Each parameter with its tensor."""
    check_shapes(model, {name: tensor.shape for name, tensor in tensors.items()})
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise UserError(f"the weights do not fit the model: {name} holds {tensor.dtype}, expected real numbers")
    return [(parameter, tensors[name]) for name, parameter in model.named_parameters()]


def check_finite(tensors: dict[str, Tensor]) -> None:
    """Raise a UserError that names a parameter if it holds an infinite number or NaN.

    Results do not always show it: attention gives zeros for a row whose scores are all NaN, and a tanh hides
    infinities.
    """
    for name, tensor in tensors.items():
        # A sum is the cheapest check of all numbers, but a sum of large ones may overflow.
        if not bool(tensor.sum().isfinite()) and not bool(tensor.isfinite().all()):
            raise UserError(
                f"{name} holds a number that is infinite or NaN: the weights are damaged, or training diverged"
            )


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") or "nothing"
