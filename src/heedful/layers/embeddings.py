"""Token embeddings, scaled by the square root of the width (paper, 3.4), plus positions and dropout (5.4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from heedful.layers.dropout import Dropout
from heedful.layers.positions import PositionScheme
from heedful.settings.embedding import EmbeddingConfig


class TokenEmbedding(nn.Module):
    """From token ids to the first block's input."""

    def __init__(
        self, table: nn.Embedding, positions: PositionScheme, dropout: float, config: EmbeddingConfig | None = None
    ) -> None:
        super().__init__()
        config = config or EmbeddingConfig()
        width = table.embedding_dim
        self.table = table
        self.positions = positions
        self.segments = nn.Embedding(config.segments, width) if config.segments else None
        self.norm = nn.LayerNorm(width, eps=config.norm_epsilon) if config.norm else nn.Identity()
        self.dropout = Dropout(dropout)
        self.scale = math.sqrt(width) if config.scaled else 1.0

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        """Embed ids B T at positions T (or B T), or ids B 1 at positions B 1; segments are all the first by default."""
        x_BTD = self.positions.add(self.table(ids) * self.scale, positions)
        if self.segments is not None:
            x_BTD = x_BTD + self.segments(torch.zeros_like(ids) if segments is None else segments)
        return self.dropout(self.norm(x_BTD))
