"""Masks are True where attention is allowed."""

from __future__ import annotations

import torch
from torch import Tensor


def padding_mask(lengths_B: Tensor, length: int, *, always: bool = False) -> Tensor | None:
    """B 1 1 S: the keys within each row's length; None where no row has padding, unless `always`."""
    if not always and bool((lengths_B == length).all()):
        return None
    return (torch.arange(length, device=lengths_B.device) < lengths_B[:, None])[:, None, None]
