"""What the translation drivers on torch share: sorted batches of padded ids, timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from padded_batches import END, PAD
from torch import Tensor

# A padded batch of sources, beams, the shortest and the longest target -> the ids of each translation.
Search = Callable[[Tensor, int, int, int], list[list[int]]]


def translate(
    search: Search, sources: list[list[int]], batch: int, beam: int, shortest: int, longest: int
) -> dict[str, Any]:
    """Translate all, the longest first, so that little is padded."""
    started = time.perf_counter()
    order = sorted(range(len(sources)), key=lambda number: -len(sources[number]))
    outputs: list[list[int]] = [[] for _ in sources]
    with torch.inference_mode():
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            length = max(len(sources[number]) for number in chosen) + 1
            padded = torch.tensor(
                [sources[number] + [END] + [PAD] * (length - 1 - len(sources[number])) for number in chosen]
            )
            for number, ids in zip(chosen, search(padded, beam, shortest, longest), strict=True):
                outputs[number] = _text(ids)[:longest]
    return {"seconds": time.perf_counter() - started, "outputs": outputs}


def _text(ids: list[int]) -> list[int]:
    ids = ids[: ids.index(END)] if END in ids else ids
    return [token for token in ids if token != PAD]
