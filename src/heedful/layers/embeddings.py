"""Token embeddings, scaled by the square root of the width (paper, 3.4), plus positions and dropout (5.4)."""

from __future__ import annotations

import math

from torch import Tensor, nn

from heedful.layers.dropout import Dropout
from heedful.layers.positions import PositionScheme


class TokenEmbedding(nn.Module):
    """From token ids to the first block's input."""

    def __init__(self, table: nn.Embedding, positions: PositionScheme, dropout: float) -> None:
        super().__init__()
        self.table = table
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(table.embedding_dim)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Embed ids B T at positions T, or ids B 1 at positions B 1."""
        x_BTD = self.positions.add(self.table(ids) * self.scale, positions)
        return self.dropout(x_BTD)
