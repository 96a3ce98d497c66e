"""What decoding with a decoder-only model holds between steps: slots whose rows begin behind their prompt."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.layers.kv_cache import FEWEST_ROWS, KeyValueCache, LayerCache, padded_length, rows_of


@dataclass(frozen=True)
class PrefilledPrompts:
    """The self-attention keys L B G T K and values L B G T V of prompts, and the prompts' lengths."""

    keys: Tensor
    values: Tensor
    lengths: Tensor


class CausalState:
    """Slots 0 .. num_sentences - 1 are in use; the rows of slot n are n * beam .. (n + 1) * beam - 1."""

    def __init__(
        self, shape: tuple[int, int, int, int], num_sentences: int, beam: int, length: int, device: torch.device
    ) -> None:
        layers, heads, key_width, value_width = shape
        self.beam = beam
        self.num_sentences = 0
        rows = max(num_sentences * beam, FEWEST_ROWS)
        self.cache = KeyValueCache((layers, rows, heads, padded_length(length), key_width), value_width, device)

    def insert(self, slots: list[int], prefilled: PrefilledPrompts, rows: list[int]) -> None:
        """Put row `rows[i]` of `prefilled` into all rows of slot `slots[i]`."""
        device = self.cache.keys.device
        targets_R = rows_of(torch.tensor(slots, device=device), self.beam)
        rows_R = torch.tensor(rows, device=device).repeat_interleave(self.beam)
        length = min(prefilled.keys.shape[3], self.cache.length)
        self.cache.keys[:, targets_R, :, :length] = prefilled.keys[:, rows_R, :, :length]
        self.cache.values[:, targets_R, :, :length] = prefilled.values[:, rows_R, :, :length]
        self.cache.positions[targets_R] = prefilled.lengths[rows_R]
        self.num_sentences = max(self.num_sentences, max(slots) + 1)

    @property
    def rows(self) -> int:
        """The rows of a step: those in use, and a few more where those would be too few."""
        return max(self.num_sentences * self.beam, FEWEST_ROWS)

    def begin_step(self) -> list[LayerCache]:
        """The views that one step works on, layer by layer."""
        return self.cache.layers(self.rows)

    def end_step(self) -> None:
        """Every row in use has one position more."""
        self.cache.positions[: self.num_sentences * self.beam] += 1

    def reorder(self, parents_R: Tensor) -> None:
        """Let row r continue from row `parents_R[r]`, a row of the same slot."""
        self.cache.reorder(parents_R)

    def select(self, slots: list[int]) -> None:
        """Keep these slots, in this order, at the front; drop the others."""
        moved = [(new, old) for new, old in enumerate(slots) if new != old]
        if moved:
            new, old = torch.tensor(moved, device=self.cache.keys.device).T
            self.cache.copy_rows(rows_of(new, self.beam), rows_of(old, self.beam))
        self.num_sentences = len(slots)
        self.cache.positions[self.num_sentences * self.beam :] = 0
