"""What decoding holds between steps: slots for sentences, with `beam` rows at positions of their own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.layers.kv_cache import padded_length
from heedful.layers.masks import added_to_scores
from heedful.layers.tree_cache import TreeCache, TreeLayerCache
from heedful.models.shortlist import ShortlistOutput


@dataclass(frozen=True)
class Prefilled:
    """Encoded sentences: for each layer cross-attention keys B H S K and values B H S V, the sources' lengths, and with
    a shortlist the tokens B C that they call for."""

    keys_values: list[list[Tensor]]
    source_lengths: Tensor
    own_tokens: Tensor | None = None


@dataclass(frozen=True)
class StepView:
    """The part of the state that one step works on."""

    positions_R: Tensor
    caches: list[TreeLayerCache]
    keys: Tensor
    values: Tensor
    source_mask: Tensor


class DecodingState:
    """Slots 0 .. num_sentences - 1 are in use; the rows of slot n are n * beam .. (n + 1) * beam - 1."""

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        capacity: tuple[int, int, int],
        device: torch.device,
        shortlist: ShortlistOutput | None = None,
    ) -> None:
        layers, heads, key_width, value_width = shape
        sentences, self.beam, source_length = capacity
        self.num_sentences = 0
        source_length = padded_length(source_length)
        self.cache = TreeCache(shape, sentences, self.beam, device)
        self.keys = torch.zeros(layers, sentences, source_length, heads, key_width, device=device)
        self.values = torch.zeros(layers, sentences, source_length, heads, value_width, device=device)
        self.source_lengths = torch.ones(sentences, dtype=torch.long, device=device)
        self.shortlist = shortlist
        self.columns = shortlist.new_columns(sentences) if shortlist else None

    def insert(self, slots: list[int], prefilled: Prefilled, rows: list[int]) -> None:
        """Put row `rows[i]` of `prefilled` into slot `slots[i]`, at the start of its target."""
        slots_N = torch.tensor(slots, device=self.keys.device)
        rows_N = torch.tensor(rows, device=self.keys.device)
        for layer, (key, value) in enumerate(prefilled.keys_values):
            self.keys[layer, slots_N, : key.shape[2]] = key.transpose(1, 2)[rows_N]
            self.values[layer, slots_N, : key.shape[2]] = value.transpose(1, 2)[rows_N]
        self.source_lengths[slots_N] = prefilled.source_lengths[rows_N]
        self.cache.begin(slots_N)
        if self.shortlist and self.columns:
            assert prefilled.own_tokens is not None
            self.shortlist.insert(self.columns, slots_N, prefilled.own_tokens[rows_N])
        self.num_sentences = max(self.num_sentences, max(slots) + 1)

    def begin_step(self, rows_A: Tensor | None = None) -> StepView:
        """Views of the slots in use, for a step of all their rows or of some."""
        sentences = self.num_sentences
        lengths = self.source_lengths[:sentences]
        source = padded_length(int(lengths.max()))
        mask = added_to_scores(torch.arange(source, device=lengths.device) < lengths[:, None])[:, None, None]
        caches = self.cache.layers(sentences, rows_A)
        positions_R = caches[0].positions_NQ.flatten()
        return StepView(
            positions_R if rows_A is None else positions_R[rows_A],
            caches,
            self.keys[:, :sentences, :source].transpose(2, 3),
            self.values[:, :sentences, :source].transpose(2, 3),
            mask,
        )

    def end_step(self) -> None:
        """Every row in use has one position more."""
        self.cache.end_step(self.num_sentences)

    def reorder(self, parents_R: Tensor) -> None:
        """Let row r continue from row `parents_R[r]`, a row of the same sentence."""
        self.cache.reorder(parents_R)

    def select(self, slots: list[int]) -> None:
        """Keep these slots, in this order, at the front; drop the others."""
        moved = [(new, old) for new, old in enumerate(slots) if new != old]
        if moved:
            new, old = torch.tensor(moved, device=self.keys.device).T
            self.keys[:, new], self.values[:, new] = self.keys[:, old], self.values[:, old]
            self.source_lengths[new] = self.source_lengths[old]
            self.cache.copy_sentences(new, old)
            if self.columns:
                self.columns.copy_sentences(new, old)
        self.num_sentences = len(slots)
