"""Learning to guess hidden tokens (Devlin et al., 2019): each epoch hides others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.prepared.mapped import ResidentPages
from heedful.tasks.encoding.batch import EncoderBatch, make_batch
from heedful.tasks.labelling.data import NO_LABEL
from heedful.tasks.padding import pad_rows
from heedful.tasks.task import Indices
from heedful.text.special_tokens import SpecialTokens

Ids = NDArray[np.integer]
Flags = NDArray[np.bool_]

# This share of all tokens is to be guessed; most of those are replaced by the mask token, some by a random token,
# and the others are shown, so that the model cannot rely on what it sees.
GUESSED = 0.15
MASKED, REPLACED = 0.8, 0.1


@dataclass(frozen=True)
class Masking:
    """How tokens are hidden; to hide whole words, `begins_word_V` says for each token whether a word begins with it."""

    special_tokens: SpecialTokens
    ordinary_tokens: Ids
    seed: int
    begins_word_V: Flags | None = None

    def hide(self, ids: Ids, epoch: int, index: int) -> tuple[Ids, Ids]:
        """The ids to show and the labels to guess: a function of the seed, the epoch and the text's index."""
        mask = self.special_tokens.mask
        assert mask is not None
        # Raw output of a bit generator: only that is promised to stay the same in all numpy versions.
        random = np.random.PCG64([self.seed, epoch, index]).random_raw(3 * len(ids)).reshape(3, -1)
        ids = ids.astype(np.int64)  # stored ids are unsigned, and no label is negative
        chosen = self._choose(ids, random[0])
        share = random[1] * 2.0**-64
        shown = ids.copy()
        shown[chosen & (share < MASKED)] = mask
        replaced = chosen & (share >= MASKED) & (share < MASKED + REPLACED)
        shown[replaced] = self.ordinary_tokens[random[2][replaced] % np.uint64(len(self.ordinary_tokens))]
        return shown, np.where(chosen, ids, NO_LABEL)

    def _choose(self, ids: Ids, random: NDArray[np.uint64]) -> Flags:
        """The tokens to guess: words (or tokens) in random order until there are enough, at least one."""
        units = np.arange(len(ids))
        if self.begins_word_V is not None:
            begins = self.begins_word_V[ids]
            begins[0] = True
            units = np.cumsum(begins) - 1
        sizes = np.bincount(units)
        order = np.argsort(random[: len(sizes)], kind="stable")
        before = np.cumsum(sizes[order]) - sizes[order]
        chosen_units = np.zeros(len(sizes), np.bool_)
        chosen_units[order[before < max(1, round(GUESSED * len(ids)))]] = True
        return chosen_units[units]


class MaskedTexts:
    """A long row of documents, each between two end tokens, in pieces that a model can take."""

    def __init__(self, text: Ids, max_length: int, masking: Masking) -> None:
        self.text, self.masking = text, masking
        self.pages = ResidentPages(text)
        self.starts, sizes = _pieces(text, masking.special_tokens.end, max_length - 2)
        # Plus the class token and the separator.
        self.lengths: NDArray[np.int32] = (sizes + 2).astype(np.int32)

    def batch(self, indices: Indices, epoch: int) -> EncoderBatch:
        """Some pieces as tensors, with other tokens hidden in each epoch."""
        self.pages.read(len(indices))
        special = self.masking.special_tokens
        shown: list[Ids] = []
        wanted: list[Ids] = []
        for index in indices.tolist():
            start = int(self.starts[index])
            ids = self.text[start : start + int(self.lengths[index]) - 2]
            visible, labels = self.masking.hide(ids, epoch, index)
            shown.append(visible)
            wanted.append(labels)
        ids_BT = pad_rows(shown, special.pad, start=special.start, end=special.end)
        labels_BT = pad_rows(wanted, NO_LABEL, start=NO_LABEL, end=NO_LABEL)
        lengths_B = torch.from_numpy(self.lengths[indices].astype(np.int64))
        return make_batch(ids_BT, lengths_B, None, labels_BT)


def _pieces(text: Ids, end: int, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the pieces of the documents begin, and their sizes: documents in equal parts, none over `longest`."""
    ends = np.flatnonzero(text == end)
    firsts, sizes = ends[:-1] + 1, np.diff(ends) - 1
    firsts, sizes = firsts[sizes > 0], sizes[sizes > 0]
    counts = -(-sizes // longest)
    document = np.repeat(np.arange(len(sizes)), counts)
    number = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = number * sizes[document] // counts[document]
    behind = (number + 1) * sizes[document] // counts[document]
    return firsts[document] + begin, behind - begin
