"""Building models whose parameters get their values from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode


class Unfilled(TorchFunctionMode):
    """While it is entered, parameters keep the memory they were given as it is: nothing is drawn, nothing written.

    To fill them and then to load others would take most of the time of loading, and memory that is touched is taken.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        target = args[0] if args else kwargs.get("tensor")  # as torch.nn.init calls it
        name = function.__name__
        in_place = name.endswith("_") and not name.endswith("__")
        return target if in_place and isinstance(target, nn.Parameter) else function(*args, **kwargs)
