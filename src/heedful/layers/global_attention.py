"""Attention as recurrent models have it: one head, from decoder states to all encoder states."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from heedful.layers.attention import AttentionLayer, Scoring
from heedful.settings.recurrent import GlobalScoring


class GlobalAttention(AttentionLayer):
    """The mean of the encoder states, weighted by how well each suits a decoder state.

    The score is additive (Bahdanau et al., 2015), or Luong et al.'s (2015): the plain dot product of both states, or
    `general`, with a matrix between them.
    """

    def __init__(self, width: int, scoring: GlobalScoring) -> None:
        super().__init__()
        self.query_projection = nn.Identity() if scoring == "dot" else nn.Linear(width, width, bias=False)
        self.key_projection = nn.Linear(width, width) if scoring == "additive" else nn.Identity()
        self.scoring_vector: nn.Parameter | None = None
        if scoring == "additive":
            self.scoring_vector = nn.Parameter(torch.randn(1, width) * width**-0.5)

    def keys(self, memory_BSW: Tensor) -> Tensor:
        """The keys B S K of encoder states, computed once."""
        return self.key_projection(memory_BSW)

    def forward(self, x_BTW: Tensor, key_BSK: Tensor, memory_BSW: Tensor, mask: Tensor | None) -> Tensor:
        """The contexts B T W of decoder states."""
        query_BTK = self.query_projection(x_BTW)
        scoring = Scoring(1.0, self.scoring_vector)
        heads = (query_BTK[:, None], key_BSK[:, None], memory_BSW[:, None])
        return self.attend(*heads, mask, False, scoring, 0.0)[:, 0]
