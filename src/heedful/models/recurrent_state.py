"""What decoding with a recurrent model holds between steps: states of the rows, and encoded sentences in slots."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.layers.kv_cache import FEWEST_ROWS, padded_length, rows_of
from heedful.layers.masks import added_to_scores


@dataclass(frozen=True)
class EncodedSources:
    """Attention keys B S K, encoder outputs B S W, their lengths, and the decoder's first states B Z."""

    keys: Tensor
    memory: Tensor
    lengths: Tensor
    states: Tensor


@dataclass(frozen=True)
class RecurrentStepView:
    """The part of the state that one step works on."""

    rows: int
    states_RZ: Tensor
    key_NSK: Tensor
    memory_NSW: Tensor
    mask_N11S: Tensor


class RecurrentState:
    """Slots 0 .. num_sentences - 1 are in use; the rows of slot n are n * beam .. (n + 1) * beam - 1."""

    columns = None

    def __init__(
        self, widths: tuple[int, int, int], num_sentences: int, beam: int, source_length: int, device: torch.device
    ) -> None:
        key_width, memory_width, state_width = widths
        self.beam = beam
        self.num_sentences = 0
        self.fewest_sentences = -(-FEWEST_ROWS // beam)
        slots, length = max(num_sentences, self.fewest_sentences), padded_length(source_length)
        self.keys = torch.zeros(slots, length, key_width, device=device)
        self.memory = torch.zeros(slots, length, memory_width, device=device)
        # Unused slots see one key of zeros, so that the rows that only fill up a step stay finite.
        self.lengths = torch.ones(slots, dtype=torch.long, device=device)
        self.states = torch.zeros(slots * beam, state_width, device=device)

    def insert(self, slots: list[int], encoded: EncodedSources, rows: list[int]) -> None:
        """Put row `rows[i]` of `encoded` into slot `slots[i]`, at the start of its target."""
        slots_N = torch.tensor(slots, device=self.keys.device)
        rows_N = torch.tensor(rows, device=self.keys.device)
        length = encoded.keys.shape[1]
        self.keys[slots_N, :length] = encoded.keys[rows_N]
        self.memory[slots_N, :length] = encoded.memory[rows_N]
        self.lengths[slots_N] = encoded.lengths[rows_N]
        self.states[rows_of(slots_N, self.beam)] = encoded.states[rows_N].repeat_interleave(self.beam, 0)
        self.num_sentences = max(self.num_sentences, max(slots) + 1)

    def begin_step(self) -> RecurrentStepView:
        """Views of the slots in use (and of a few more, where those would be fewer than 4 rows)."""
        sentences = max(self.num_sentences, self.fewest_sentences)
        rows = sentences * self.beam
        lengths = self.lengths[:sentences]
        source = padded_length(int(lengths.max()))
        mask = added_to_scores(torch.arange(source, device=lengths.device) < lengths[:, None])[:, None, None]
        return RecurrentStepView(
            rows, self.states[:rows], self.keys[:sentences, :source], self.memory[:sentences, :source], mask
        )

    def end_step(self, states_RZ: Tensor) -> None:
        """Every row has read one token more."""
        self.states[: len(states_RZ)] = states_RZ

    def reorder(self, parents_R: Tensor) -> None:
        """Let row r continue from row `parents_R[r]`, a row of the same sentence."""
        self.states[: len(parents_R)] = self.states[parents_R]

    def select(self, slots: list[int]) -> None:
        """Keep these slots, in this order, at the front; drop the others."""
        moved = [(new, old) for new, old in enumerate(slots) if new != old]
        if moved:
            new, old = torch.tensor(moved, device=self.keys.device).T
            self.keys[new], self.memory[new] = self.keys[old], self.memory[old]
            self.lengths[new] = self.lengths[old]
            self.states[rows_of(new, self.beam)] = self.states[rows_of(old, self.beam)]
        self.num_sentences = len(slots)
        self.lengths[self.num_sentences :] = 1
