"""The control that interpolated positions are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def crop_or_tile(table: Tensor, grid: Sequence[int]) -> Tensor:
    """A table cut to a smaller grid, or repeated over a larger one."""
    for axis, length in enumerate(grid):
        table = table.index_select(axis, torch.arange(length, device=table.device) % table.shape[axis])
    return table
