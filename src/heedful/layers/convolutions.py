"""Convolutions over neighbouring tokens: short phrases, and edges, are seen before attention has to find them."""

from __future__ import annotations

import math
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
        """Padding counts as zeros. One product over all windows: its rows do not depend on the batch."""
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

    def forward(self, x_BPD: Tensor, grid: Sequence[int], steps: Sequence[float]) -> Tensor:
        """Neighbours are `steps` apart along each axis: one that lies between two tokens is a mean of both.

        Beyond the edges everything is zero.
        """
        side = self.size // 2
        x = x_BPD.view(len(x_BPD), *grid, -1)
        for axis, step in enumerate(steps, 1):
            x = torch.cat(_seen_from_afar(x, axis, [place * step for place in range(-side, side + 1)]), -1)
        return x_BPD + F.gelu(self.projection(x.flatten(1, -2)))


def _seen_from_afar(x: Tensor, axis: int, distances: Sequence[float]) -> list[Tensor]:
    """For each distance along an axis, what lies there; between two places, a mean of both weighted by nearness."""
    reach, length = math.ceil(max(distances)), x.shape[axis]
    padded = F.pad(x, [0, 0] * (x.dim() - 1 - axis) + [reach, reach])
    seen = []
    for distance in distances:
        before = math.floor(distance)
        here = padded.narrow(axis, reach + before, length)
        if distance != before:
            here = here.lerp(padded.narrow(axis, reach + before + 1, length), distance - before)
        seen.append(here)
    return seen
