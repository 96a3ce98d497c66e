"""From token ids to the first block's input, written out, with a tap at each step."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.inspection.trace.attend import Place
from heedful.layers.embeddings import TokenEmbedding


def tapped_embedding(
    embedding: TokenEmbedding, tap: Place, ids_BT: Tensor, positions: Tensor, segments_BT: Tensor | None = None
) -> Tensor:
    """The embedding's output: rows of its table, scaled, plus positions and segments, normalised if it has a norm."""
    ids_BT = tap("ids", "BT", ids_BT)
    x_BTD = tap("vectors", "BTD", F.embedding(ids_BT, embedding.table.weight))
    if embedding.scale != 1.0:
        x_BTD = tap("scaled", "BTD", x_BTD * embedding.scale)
    if embedding.positions.uses("add"):
        added = embedding.positions.add(torch.zeros_like(x_BTD[:1] if positions.dim() == 1 else x_BTD), positions)
        x_BTD = x_BTD + (tap("positions", "TD", added[0]) if positions.dim() == 1 else added)
    if embedding.segments is not None:
        segments_BT = torch.zeros_like(ids_BT) if segments_BT is None else segments_BT
        x_BTD = x_BTD + tap("segments", "BTD", embedding.segments(segments_BT))
    if isinstance(embedding.norm, nn.Identity):
        return tap("output", "BTD", x_BTD)
    return tap("output", "BTD", embedding.norm(tap("sum", "BTD", x_BTD)))
