"""Masks are True where attention is allowed; those of decoding are numbers that are added to the scores."""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor


def padding_mask(lengths_B: Tensor, length: int, *, always: bool = False) -> Tensor | None:
    """B 1 1 S: the keys within each row's length; None where no row has padding, unless `always`."""
    if not always and bool((lengths_B == length).all()):
        return None
    return (torch.arange(length, device=lengths_B.device) < lengths_B[:, None])[:, None, None]


def whole_lengths(ids_BT: Tensor) -> Tensor:
    """The lengths of rows without padding."""
    return torch.full((len(ids_BT),), ids_BT.shape[1], device=ids_BT.device)


def added_to_scores(seen: Tensor) -> Tensor:
    """A mask in the form that attention takes without any more work: 0 where a key is seen, else -inf."""
    return torch.zeros(seen.shape, device=seen.device).masked_fill_(~seen, -torch.inf)


def is_added(mask: Tensor | None) -> TypeGuard[Tensor]:
    """Whether it is such a mask, that of a step of decoding."""
    return mask is not None and mask.is_floating_point()


def left_to_right_mask(ids_BT: Tensor, documents_BT: Tensor | None) -> Tensor:
    """1 1 T T, or B 1 T T: the keys up to each query, of the same document where rows hold several."""
    length = ids_BT.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool, device=ids_BT.device).tril()[None, None]
    return mask if documents_BT is None else mask & (documents_BT[:, :, None] == documents_BT[:, None])[:, None]
