"""Masks are True where attention is allowed; those of decoding are numbers that are added to the scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import torch
from torch import Tensor


def padding_mask(lengths_B: Tensor, length: int, *, always: bool = False) -> Tensor | None:
    """B 1 1 S: the keys within each row's length; None where no row has padding, unless `always`."""
    if not always and bool((lengths_B == length).all()):
        return None
    return (torch.arange(length, device=lengths_B.device) < lengths_B[:, None])[:, None, None]


def causal_mask(query_length: int, key_length: int, device: torch.device) -> Tensor:
    """True where key position <= query position (paper, 3.2.3)."""
    return torch.ones(query_length, key_length, dtype=torch.bool, device=device).tril()


def window_mask(query_positions: Tensor, key_positions: Tensor, window: int) -> Tensor:
    """True where a key is fewer than `window` positions away from its query."""
    return (query_positions[..., :, None] - key_positions[..., None, :]).abs() < window


def by_head(mask: Tensor | None) -> Tensor | None:
    """A mask in a shape that broadcasts to scores B H T S: T S and B H T S do already, B T S is the same for all heads.

    Numbers are refused: other libraries use 1 for what is seen, or for what is hidden, or add the mask to the scores.
    """
    if mask is not None and (not isinstance(mask, Tensor) or mask.dtype != torch.bool):
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(
            f"the mask is of {kind}, but must be a tensor of torch.bool, True where attention is allowed: "
            "if it has 0 where a key is hidden, give mask != 0; if it has 1 or -inf there, mask == 0"
        )
    if mask is not None and not 2 <= mask.dim() <= 4:
        raise ValueError(f"a mask has the axes T S, B T S or B H T S, not the shape {tuple(mask.shape)}")
    return mask[:, None] if mask is not None and mask.dim() == 3 else mask


def whole_lengths(ids_BT: Tensor) -> Tensor:
    """The lengths of rows without padding."""
    return torch.full((len(ids_BT),), ids_BT.shape[1], device=ids_BT.device)


def given_lengths(lengths: Tensor | Sequence[int] | None, ids_BT: Tensor) -> Tensor | None:
    """The lengths that somebody calls a model with, as a tensor; a ValueError names the first that cannot be.

    The check waits for the device, so it is where calls come in from outside: training and decoding, whose lengths are
    right by construction, call what is behind it.
    """
    if lengths is None:
        return None
    lengths_B = torch.as_tensor(lengths, device=ids_BT.device)
    rows, length = ids_BT.shape
    if lengths_B.shape != (rows,) or lengths_B.is_floating_point():
        kind, shape = str(lengths_B.dtype).removeprefix("torch."), tuple(lengths_B.shape)
        raise ValueError(f"lengths are one whole number for each of the {rows} rows, not {kind} of the shape {shape}")
    if torch.compiler.is_compiling() or lengths_B.device.type == "meta":
        return lengths_B
    wrong_B = (lengths_B < 1) | (lengths_B > length)
    if bool(wrong_B.any()):
        row = int(wrong_B.nonzero()[0])
        raise ValueError(
            f"the length of row {row} is {int(lengths_B[row])}, but must be from 1 to {length}, the positions of a row"
        )
    return lengths_B


def added_to_scores(seen: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """A mask in the form that attention takes without further work: 0 where a key is seen, else -inf.

    Its type must be that of the keys.
    """
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -torch.inf)


def is_added(mask: Tensor | None) -> TypeGuard[Tensor]:
    """Whether a mask is of that form, which decoding steps use."""
    return mask is not None and mask.is_floating_point()


def left_to_right_mask(ids_BT: Tensor, documents_BT: Tensor | None) -> Tensor:
    """1 1 T T, or B 1 T T: the keys up to each query, of the same document where rows hold several."""
    length = ids_BT.shape[1]
    mask = torch.ones(length, length, dtype=torch.bool, device=ids_BT.device).tril()[None, None]
    return mask if documents_BT is None else mask & (documents_BT[:, :, None] == documents_BT[:, None])[:, None]
