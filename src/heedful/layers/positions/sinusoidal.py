"""Sines and cosines of the position, added to embeddings (paper, 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.layers.positions.scheme import PositionScheme
from heedful.settings.position_scheme import PositionConfig, PositionSizes


class SinusoidalPositions(PositionScheme):
    """The paper's sines and cosines, computed once."""

    table: Tensor

    def __init__(self, sizes: PositionSizes, config: PositionConfig | None = None) -> None:
        super().__init__(sizes, config)
        self.register_buffer("table", self._table(sizes.length), persistent=False)

    def _table(self, length: int) -> Tensor:
        return sinusoid_table(length, self.sizes.width)

    def add(self, x_BTD: Tensor, positions: Tensor) -> Tensor:
        return x_BTD + self.table[positions]

    def resize(self, length: int) -> None:
        super().resize(length)
        self.table = self._table(length).to(self.table)


class SinusoidHalvesPositions(SinusoidalPositions):
    """The paper's positions with all sines before all cosines, as Marian has them."""

    def _table(self, length: int) -> Tensor:
        table = sinusoid_table(length, self.sizes.width)
        return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


def sinusoid_table(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = (positions * rates).sin().float()
    table[:, 1::2] = (positions * rates).cos().float()[:, : width // 2]
    return table
