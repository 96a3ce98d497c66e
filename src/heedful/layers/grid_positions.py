"""Learned positions for the places of a grid, which can be used on a grid of another size."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GridPositions(nn.Module):
    """A trained vector for every place of a grid with any number of axes."""

    def __init__(self, grid: Sequence[int], width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(*grid, width))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, grid: Sequence[int]) -> Tensor:
        """The vectors P D of the places of a grid, interpolated if the grid is not that of the training."""
        return interpolate(self.table, grid).flatten(0, -2)


def interpolate(table: Tensor, grid: Sequence[int]) -> Tensor:
    """A table, whose last axis holds the vectors, stretched to another grid by cubic interpolation, axis by axis.

    On two axes this is bicubic interpolation; for a grid of the same size it is the table itself.
    """
    for axis, length in enumerate(grid):
        if length != table.shape[axis]:
            moved = table.movedim(axis, 0)
            columns = moved.reshape(1, 1, len(moved), -1)
            size = (length, columns.shape[-1])
            stretched = F.interpolate(columns, size=size, mode="bicubic", align_corners=False)
            table = stretched.reshape(length, *moved.shape[1:]).movedim(0, axis)
    return table
