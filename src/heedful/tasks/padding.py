"""Rows of different lengths as one tensor."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ids = NDArray[np.integer]


def pad_rows(rows: list[Ids], pad: int, *, start: int | None = None, end: int | None = None) -> Tensor:
    """Ids of different lengths as one tensor, with a start or an end token added."""
    before, behind = int(start is not None), int(end is not None)
    length = max(len(row) for row in rows) + before + behind
    padded = np.full((len(rows), length), pad, dtype=np.int64)
    if start is not None:
        padded[:, 0] = start
    for target, row in zip(padded, rows, strict=True):
        target[before : before + len(row)] = row
        if end is not None:
            target[before + len(row)] = end
    return torch.from_numpy(padded)
