"""Building models whose parameters get their values from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from heedful.errors import UserError

# The functions that allocate a tensor of a given size.
FACTORIES = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}


class Unfilled(TorchFunctionMode):
    """While active, the memory of parameters stays as it was allocated: nothing is drawn, nothing written.

    Filling them before loading others would take most of the loading time, and memory is only taken once touched.
    More than `most` numbers in all are refused: such a model cannot be the one in the file.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = self.left = most

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if function in FACTORIES:
            self._count(args[0] if args and isinstance(args[0], Sequence) else args or kwargs.get("size", ()))
        target = args[0] if args else kwargs.get("tensor")  # as torch.nn.init calls it
        name = function.__name__
        in_place = name.endswith("_") and not name.endswith("__")
        return target if in_place and isinstance(target, nn.Parameter) else function(*args, **kwargs)

    def _count(self, size: Any) -> None:
        self.left -= math.prod(length for length in size if isinstance(length, int))
        if self.left < 0:
            raise UserError(f"the settings ask for a model of more than {self.most:,} numbers, larger than its weights")
