"""The first values of a model, drawn one parameter at a time: the same as in the ordinary build, to the last bit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from heedful.models.unfilled import Unfilled

IN_PLACE = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "pow")} | {"__setitem__"}


class NotByParameterError(Exception):
    """A model whose values are not drawn parameter by parameter."""


@dataclass(frozen=True)
class Change:
    """A function that changed a parameter as its model was built, and the state of the generator then."""

    generator: Tensor
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def apply(self, tensor: Tensor) -> None:
        """Do the same to a tensor that stands in for the parameter."""
        named = {"tensor": tensor} if "tensor" in self.kwargs else {}
        self.function(*((tensor, *self.args[1:]) if self.args else ()), **{**self.kwargs, **named})


class Drawing:
    """Builds a model whose parameters hold nothing yet, and gives their values one at a time.

    While it builds, every change to a parameter is made to a tensor in its place, which is dropped at once, so that the
    random number generator goes through the same states as in the ordinary build. No more than one parameter ever
    exists whole: the memory of the others is allocated, but not touched, and so not taken from the system.
    """

    def __init__(self, build: Callable[[], nn.Module], seed: int) -> None:
        self.build, self.seed = build, seed
        self.changes: dict[nn.Parameter, list[Change]] = {}
        self.scratch = Scratch()

    def unfilled(self) -> nn.Module:
        """The model with nothing drawn."""
        with Unfilled(sys.maxsize):
            return self.build()

    def model(self) -> nn.Module:
        """The model whose values `value` gives; one that cannot be drawn by parameter is built as usual."""
        torch.manual_seed(self.seed)
        try:
            with _Changes(self.changes, self.scratch):
                return self.build()
        except NotByParameterError:
            self.changes.clear()
            torch.manual_seed(self.seed)
            return self.build()

    @torch.no_grad()
    def value(self, parameter: nn.Parameter) -> Tensor:
        """The whole of a parameter, as the ordinary build gives it; valid until the next one is asked for."""
        whole = self.scratch.like(parameter)
        whole.copy_(parameter)
        with torch.random.fork_rng(devices=[]):
            for change in self.changes.pop(parameter, ()):
                torch.set_rng_state(change.generator)
                change.apply(whole)
        return whole


class Scratch:
    """Memory for one tensor after another.

    What each of them allocated and freed would go to the next parameter, which would then hold memory that was touched.
    """

    def __init__(self) -> None:
        self.buffer = torch.empty(0)

    def like(self, parameter: Tensor) -> Tensor:
        """A tensor of the shape of another, with arbitrary values."""
        count = parameter.numel()
        if self.buffer.dtype != parameter.dtype or len(self.buffer) < count:
            self.buffer = torch.empty(max(count, 2 * len(self.buffer)), dtype=parameter.dtype)
        return self.buffer[:count].view(parameter.shape)


class _Changes(TorchFunctionMode):
    """Records what changes parameters, and applies it to a tensor that is dropped."""

    def __init__(self, found: dict[nn.Parameter, list[Change]], scratch: Scratch) -> None:
        super().__init__()
        self.found, self.scratch = found, scratch

    @torch.no_grad()
    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        target = args[0] if args else kwargs.get("tensor")  # as torch.nn.init calls it
        if not (isinstance(target, Tensor) and _changes(function.__name__)):
            return function(*args, **kwargs)
        if not isinstance(target, nn.Parameter):
            if isinstance(target._base, nn.Parameter):
                raise NotByParameterError
            return function(*args, **kwargs)
        change = Change(torch.get_rng_state(), function, tuple(args), kwargs)
        change.apply(self.scratch.like(target))
        self.found.setdefault(target, []).append(change)
        return target


def _changes(name: str) -> bool:
    """Whether a function of that name changes what it is called with, as `mul_` and `__imul__` do."""
    return name in IN_PLACE or (name.endswith("_") and not name.endswith("__"))
