"""What the mapping files share: tensors that are taken one by one, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from heedful.errors import UserError


class Tensors:
    """The tensors of a foreign model; each is to be taken once, so that what is left over can be told."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = dict(tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str) -> Tensor:
        """A tensor that must be there."""
        if name not in self._tensors:
            raise UserError(f"the tensor {name} is missing")
        return self._tensors.pop(name).float()

    def take_layer(self, theirs: str, ours: str) -> dict[str, Tensor]:
        """The weight of a linear layer or a norm, and its bias if it has one."""
        found = {f"{ours}.weight": self.take(f"{theirs}.weight")}
        if f"{theirs}.bias" in self:
            found[f"{ours}.bias"] = self.take(f"{theirs}.bias")
        return found

    def take_packed(self, theirs: Iterable[str], ours: str) -> dict[str, Tensor]:
        """Several linear layers of one input as one."""
        layers = [self.take_layer(name, "part") for name in theirs]
        return {
            f"{ours}.{kind.removeprefix('part.')}": torch.cat([layer[kind] for layer in layers]) for kind in layers[0]
        }

    def drop(self, is_unneeded: Callable[[str], bool]) -> None:
        """Forget tensors that hold nothing of their own: copies, and buffers that are computed."""
        self._tensors = {name: tensor for name, tensor in self._tensors.items() if not is_unneeded(name)}

    @property
    def left_over(self) -> list[str]:
        """The names of those that nobody has taken."""
        return sorted(self._tensors)


@dataclass(frozen=True)
class Imported:
    """A foreign model in heedful's terms: the family's settings, and the parameters by heedful's names."""

    family: str
    task: str
    settings: Any
    tensors: dict[str, Tensor]
    labels: tuple[str, ...] = field(default=())


# The names that Hugging Face has for the activations of feed-forward networks.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


def activation(name: str) -> Any:
    """Our name of an activation."""
    if name not in ACTIVATIONS:
        raise UserError(f"the activation {name!r} is not supported: heedful knows {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def require_setting(config: dict[str, Any], name: str, supported: Any, default: Any) -> None:
    """Refuse a model that differs from ours in a way that no setting covers."""
    value = config.get(name, default)
    if value != supported:
        raise UserError(f"config.json has {name} = {value!r}, and only {supported!r} is supported")


def label_names(config: dict[str, Any]) -> tuple[str, ...]:
    """The names of the classes, in the order of their numbers; two without names if none are given."""
    names = config.get("id2label") or {0: "LABEL_0", 1: "LABEL_1"}
    return tuple(names[number] for number in sorted(names, key=int))
