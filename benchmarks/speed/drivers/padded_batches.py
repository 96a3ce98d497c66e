"""Sentence pairs from a file of ids, and padded batches of them; the ids are heedful's: 0 pad, 1 start, 2 end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

PAD, START, END = 0, 1, 2


@dataclass(frozen=True)
class Batch:
    """Padded ids: sources with their end, what the decoder reads, what it is to answer, and what of all is real."""

    source_BS: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    labels_BT: Tensor
    source_tokens: int
    target_tokens: int


class Pairs:
    """Sentence pairs as lists of ids without start and end."""

    def __init__(self, file: str) -> None:
        arrays = np.load(file)
        self.sources, self.targets = (
            np.split(arrays[f"{side}_ids"].astype(np.int64), np.cumsum(arrays[f"{side}_lengths"])[:-1])
            for side in ("source", "target")
        )

    def lengths(self) -> tuple[Any, Any]:
        """The lengths of sources and targets, each with its end."""
        return tuple(np.array([len(row) + 1 for row in rows]) for rows in (self.sources, self.targets))  # type: ignore[return-value]

    def batch(self, indices: Any) -> Batch:
        """Some pairs, padded."""
        sources = [np.append(self.sources[i], END) for i in indices]
        labels = [np.append(self.targets[i], END) for i in indices]
        targets = [np.append(START, self.targets[i]) for i in indices]
        return Batch(
            _padded(sources),
            torch.tensor([len(row) for row in sources]),
            _padded(targets),
            _padded(labels),
            sum(map(len, sources)),
            sum(map(len, labels)),
        )


def random_batches(count: int, sentences: int, batches: int) -> list[Any]:
    """Pairs drawn at random, as loaders do that do not look at lengths."""
    order = np.random.default_rng(7).permutation(count)
    return [order[i * sentences : (i + 1) * sentences] for i in range(batches)]


def _padded(rows: list[Any]) -> Tensor:
    padded = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(padded)
