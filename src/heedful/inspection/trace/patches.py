"""Other tensors in place of those that a model computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.config import nearest, shown
from heedful.errors import UserError
from heedful.inspection.trace.point import Point

# A tensor, or a function of the tensor that it replaces.
Patch = Tensor | Callable[[Tensor], Tensor]


class Patches:
    """Replaces some tensors; sequences in `growing` are written token by token.

    Along these, a tensor covers the first positions: any beyond what is written so far are left out, and beyond its end
    the model's own values stay.
    """

    def __init__(self, patches: Mapping[str, Any], growing: Sequence[str] = ()) -> None:
        if not isinstance(patches, Mapping):
            raise UserError(f"the patches are {shown(patches)}, but must be a dict from names to tensors or functions")
        self.patches = {name: _checked(name, patch) for name, patch in patches.items()}
        self.growing = frozenset(growing)
        self.met: set[str] = set()
        self.computed = False

    def __call__(self, point: Point, tensor: Tensor) -> Tensor:
        """The tensor that the model goes on with."""
        self.computed = True
        patch = self.patches.get(point.name)
        if patch is None:
            return tensor
        self.met.add(point.name)
        found = self._placed(point, patch, tensor) if isinstance(patch, Tensor) else patch(tensor.clone())
        if not isinstance(found, Tensor) or found.shape != tensor.shape:
            raise UserError(
                f"the patch of {point.name} gives {_size(found)}, but must give {_size(tensor)}, its {point.letters}"
            )
        return found.to(tensor)

    def _placed(self, point: Point, patch: Tensor, tensor: Tensor) -> Tensor:
        """A tensor in place of another one, some of whose positions may not exist yet."""
        if patch.dim() != tensor.dim():
            return patch  # the caller rejects it by its shape
        sizes = []
        for axis, (letter, mine, theirs) in enumerate(zip(point.letters, patch.shape, tensor.shape, strict=True)):
            sequence = {"T": point.rows, "S": point.columns}.get(letter)
            if mine != theirs and sequence not in self.growing and not (axis == 0 and letter == "B" and mine == 1):
                return patch
            sizes.append(min(mine, theirs) if letter != "B" else theirs)
        placed = tensor.clone()
        first = tuple(slice(size) for size in sizes)
        placed[first] = patch[first].to(tensor)
        return placed

    def check_names(self, names: Sequence[str]) -> None:
        """Raise a UserError for a patch of something that the model does not have."""
        for name in self.patches:
            if name not in names:
                raise UserError(f"this model computes no {name!r}: {nearest(name, list(names))}")

    def check_used(self) -> None:
        """Raise a UserError for a patch that was never used, although the model has computed something."""
        unused = [name for name in self.patches if name not in self.met]
        if self.computed and unused:
            raise UserError(
                f"nothing was patched at {unused[0]!r}: the model did not compute it inside the block "
                "(a text without padding, for one, has no mask in an encoder)"
            )


def _checked(name: str, patch: Any) -> Patch:
    if isinstance(patch, np.ndarray):
        patch = torch.from_numpy(patch)
    if not isinstance(patch, Tensor) and not callable(patch):
        raise UserError(f"the patch of {name} is {shown(patch)}, but must be a tensor or a function of one")
    return patch


def _size(found: object) -> str:
    return f"a tensor of the shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
