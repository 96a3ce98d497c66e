"""What the mapping files share: tensors that are taken one by one, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from heedful.config import shown
from heedful.errors import UserError
from heedful.interop.foreign_config import ForeignConfig
from heedful.text.label_names import check_label_names


class Tensors:
    """The tensors of a foreign model; each is taken once, so that what is left over is known."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self._tensors = dict(tensors)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str, axes: int | None = None) -> Tensor:
        """A tensor that must exist, with this many axes, and hold finite numbers."""
        if name not in self._tensors:
            raise UserError(f"the tensor {name} is missing")
        tensor = self._tensors.pop(name)
        if not tensor.is_floating_point():
            raise UserError(f"the tensor {name} is of {tensor.dtype}, expected floating-point numbers")
        if axes is not None and (tensor.dim() != axes or not tensor.numel()):
            raise UserError(f"the tensor {name} is {tuple(tensor.shape)}, expected {axes} axes")
        tensor = tensor.float()
        # The sum of finite numbers can only overflow if they are absurdly large; checking each of them takes longer.
        if not bool(tensor.sum().isfinite()) and not bool(tensor.isfinite().all()):
            raise UserError(f"the tensor {name} holds NaN or infinity: these weights are damaged")
        return tensor

    def take_layer(self, theirs: str, ours: str, axes: int | None = None) -> dict[str, Tensor]:
        """The weight of a linear layer or a norm, and its bias if it has one."""
        found = {f"{ours}.weight": self.take(f"{theirs}.weight", axes)}
        if f"{theirs}.bias" in self:
            found[f"{ours}.bias"] = self.take(f"{theirs}.bias", 1)
        return found

    def take_packed(self, theirs: Iterable[str], ours: str) -> dict[str, Tensor]:
        """Several linear layers with the same input as one."""
        names = list(theirs)
        layers = [self.take_layer(name, "part", 2) for name in names]
        for name, layer in zip(names, layers, strict=True):
            if layer.keys() != layers[0].keys() or layer["part.weight"].shape[1] != layers[0]["part.weight"].shape[1]:
                raise UserError(f"{name} has another input or bias than {names[0]}, which is not supported")
        return {
            f"{ours}.{kind.removeprefix('part.')}": torch.cat([layer[kind] for layer in layers]) for kind in layers[0]
        }

    def drop(self, is_unneeded: Callable[[str], bool]) -> None:
        """Forget tensors that are not needed: copies, computed buffers, and parts without a counterpart."""
        self._tensors = {name: tensor for name, tensor in self._tensors.items() if not is_unneeded(name)}

    @property
    def left_over(self) -> list[str]:
        """The names of the tensors that were not taken."""
        return sorted(self._tensors)


@dataclass(frozen=True)
class Imported:
    """A foreign model in heedful's terms: the family's settings, and the parameters by heedful's names."""

    family: str
    task: str
    settings: Any
    tensors: dict[str, Tensor]
    labels: tuple[str, ...] = field(default=())
    remarks: tuple[str, ...] = ()


# Hugging Face's names for the activations of feed-forward networks.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


def activation(config: ForeignConfig, name: str, default: str) -> Any:
    """Our name for the activation that a setting names."""
    theirs = config.text(name, default)
    if theirs not in ACTIVATIONS:
        raise config.error(f"{name} is {shown(theirs)}, and only {', '.join(ACTIVATIONS)} are supported")
    return ACTIVATIONS[theirs]


def label_names(config: ForeignConfig, *, as_words: bool = False) -> tuple[str, ...]:
    """The names of the classes, in the order of their numbers; two generic ones if none are given.

    `as_words`, they are tags, and must be words.
    """
    names = config.value("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    numbers = [str(number) for number in range(len(names))] if isinstance(names, dict) else []
    if (
        not isinstance(names, dict)
        or set(names) != set(numbers)
        or not all(type(names[each]) is str for each in numbers)
    ):
        raise config.error("id2label must name the classes 0, 1 and so on, without a gap")
    labels = tuple(names[number] for number in numbers)
    check_label_names(labels, f"{config.file}: id2label", as_words=as_words)
    return labels
