"""Convolutions over neighbouring tokens: short phrases, and edges, are seen before attention has to find them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Neighbourhood(nn.Module):
    """Adds to each token what it forms with its neighbours, `size` tokens in all with itself in the middle."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        assert size % 2 == 1, "a token has as many neighbours on either side"
        self.size = size
        self.projection = nn.Linear(size * width, width)

    def forward(self, x_BTD: Tensor, lengths_B: Tensor) -> Tensor:
        """Padding is as good as nothing there. One product over all windows: its rows do not depend on the batch."""
        side = self.size // 2
        real_BT1 = (torch.arange(x_BTD.shape[1], device=x_BTD.device) < lengths_B[:, None])[..., None]
        padded = F.pad(x_BTD * real_BT1, (0, 0, side, side))
        windows = torch.cat([padded[:, start : start + x_BTD.shape[1]] for start in range(self.size)], -1)
        return x_BTD + F.gelu(self.projection(windows))


class GridNeighbourhood(nn.Module):
    """The same for tokens on a grid: adds to each what it forms with those around it, `size` along each axis."""

    def __init__(self, width: int, size: int, axes: int) -> None:
        super().__init__()
        assert size % 2 == 1, "a token has as many neighbours on either side"
        self.size = size
        self.projection = nn.Linear(size**axes * width, width)

    def forward(self, x_BPD: Tensor, grid: Sequence[int]) -> Tensor:
        """Beyond the edges there is nothing."""
        side = self.size // 2
        x = F.pad(x_BPD.view(len(x_BPD), *grid, -1), (0, 0, *[side] * (2 * len(grid))))
        for axis, length in enumerate(grid, 1):
            x = torch.cat([x.narrow(axis, start, length) for start in range(self.size)], -1)
        return x_BPD + F.gelu(self.projection(x.flatten(1, -2)))
