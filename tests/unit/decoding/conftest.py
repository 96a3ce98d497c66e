"""A model without layers: its logits are a fixed function of the source and the tokens so far."""

import hashlib
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from heedful.text.special_tokens import SpecialTokens

END, START = 2, 1


@dataclass
class TableState:
    """Keeps what every row was given, and holds the caller to the rules of the seam."""

    columns = None

    capacity: int
    beam: int
    source_length: int
    target_length: int

    def __post_init__(self):
        self.num_sentences = 0
        self.sources, self.histories, self.inserts = [], [], []

    def insert(self, slots, prefilled, rows):
        assert len(slots) == len(rows) == len(set(slots))
        for slot, row in zip(slots, rows, strict=True):
            assert 0 <= slot <= self.num_sentences < self.capacity or slot < self.num_sentences
            source = prefilled[row]
            assert source[-1] == END
            assert len(source) <= self.source_length
            if slot == self.num_sentences:
                self.num_sentences += 1
                self.sources.append(None)
                self.histories.extend([None] * self.beam)
            self.sources[slot] = source
            self.histories[slot * self.beam : (slot + 1) * self.beam] = [()] * self.beam
        self.inserts.append(list(slots))

    def reorder(self, parents_R):
        parents = parents_R.tolist()
        assert len(parents) == len(self.histories)
        assert all(row // self.beam == parent // self.beam for row, parent in enumerate(parents))
        self.histories = [self.histories[parent] for parent in parents]

    def select(self, slots):
        self.sources = [self.sources[slot] for slot in slots]
        rows = [slot * self.beam + k for slot in slots for k in range(self.beam)]
        self.histories = [self.histories[row] for row in rows]
        self.num_sentences = len(slots)


class TableModel:
    """`spread` widens the logits, `end_bias` makes END likelier, `quantum` makes many logits equal."""

    device = torch.device("cpu")
    special_tokens = SpecialTokens()
    limit = None

    def __init__(self, vocabulary_size, spread=2.0, end_bias=0.0, quantum=0.0, seed=0):
        self.vocabulary_size, self.spread, self.end_bias = vocabulary_size, spread, end_bias
        self.quantum, self.seed = quantum, seed
        self.cached, self.states, self.prefilled = {}, [], []

    continues_text = False

    def longest_target(self, source_length):
        return self.limit

    def frame(self, source):
        return [*source, END], START

    def logits(self, source, tokens):
        """The logits after `tokens`, for a source that ends with END."""
        key = (source, tokens)
        if key not in self.cached:
            digest = hashlib.blake2b(repr((self.seed, key)).encode(), digest_size=8).digest()
            row = np.random.default_rng(int.from_bytes(digest, "big")).normal(size=self.vocabulary_size)
            row = (self.spread * row).astype(np.float32)
            row[END] += self.end_bias
            if self.quantum:
                row = np.round(row / self.quantum) * np.float32(self.quantum)
            self.cached[key] = torch.from_numpy(row.astype(np.float32))
        return self.cached[key]

    def log_probabilities(self, source, tokens):
        """The same as log-probabilities, in 64 bits; the source is given without its END."""
        return self.logits((*source, END), tuple(tokens)).double().log_softmax(-1)

    def prefill(self, source_BS, source_lengths_B):
        rows = [tuple(row[:n]) for row, n in zip(source_BS.tolist(), source_lengths_B.tolist(), strict=True)]
        self.prefilled.append(rows)
        return rows

    def new_state(self, num_sentences, beam, source_length, target_length):
        self.states.append(TableState(num_sentences, beam, source_length, target_length))
        return self.states[-1]

    def step(self, tokens_R, state, rows_A=None):
        assert len(tokens_R) == state.num_sentences * state.beam
        rows = []
        for row, token in enumerate(tokens_R.tolist()):
            assert len(state.histories[row]) < state.target_length
            assert (token == START) == (state.histories[row] == ())
            state.histories[row] = (*state.histories[row], token)
            rows.append(self.logits(state.sources[row // state.beam], state.histories[row][1:]))
        return torch.stack(rows)[slice(None) if rows_A is None else rows_A]


@pytest.fixture
def table_model():
    return TableModel
