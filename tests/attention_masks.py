"""Masks that tests of attention share."""

import torch


def masks(batch: int, queries: int, keys: int) -> dict[str, torch.Tensor | None]:
    """By name: none, a mask of padding for three rows, and one that leaves some queries no key at all."""
    padding = torch.arange(keys) < torch.tensor([keys, 4, 1])[:, None]
    some_rows_blind = torch.rand(batch, 1, queries, keys, generator=torch.Generator().manual_seed(2)) < 0.3
    some_rows_blind[1, :, 2] = False
    return {"none": None, "padding": padding[:, None, None], "blind rows": some_rows_blind}
