"""A trained vector per position, added to embeddings."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.layers.positions.scheme import PositionScheme
from heedful.settings.position_scheme import PositionConfig, PositionSizes
from heedful.settings.positions import LEARNED


class LearnedPositions(PositionScheme):
    """A trained vector per position."""

    extends = LEARNED.extends

    def __init__(self, sizes: PositionSizes, config: PositionConfig | None = None) -> None:
        super().__init__(sizes, config)
        self.table = nn.Parameter(torch.randn(sizes.length, sizes.width) * 0.02)

    def add(self, x_BTD: Tensor, positions: Tensor) -> Tensor:
        return x_BTD + self.table[positions]

    def resize(self, length: int) -> None:
        if length == self.length:
            return
        super().resize(length)
        table = self.table.detach().T[None]
        resized = F.interpolate(table, size=length, mode="linear", align_corners=True)[0].T
        self.table = nn.Parameter(resized.contiguous())
