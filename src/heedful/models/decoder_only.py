"""Decoder-only Transformers, such as GPT: each token is predicted from those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import known_size
from heedful.errors import UserError
from heedful.layers.attention import Attend
from heedful.layers.blocks import final_norm, initialise
from heedful.layers.embeddings import TokenEmbedding
from heedful.layers.kv_cache import (
    FEWEST_ROWS,
    KeyValueCache,
    LayerCache,
    padded_length,
    rows_of,
    stored_type,
    with_enough_rows,
)
from heedful.layers.stacks import quieten, self_stack, stack_positions
from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.text.special_tokens import SpecialTokens


@dataclass(frozen=True)
class PrefilledPrompts:
    """The self-attention keys L B G T K and values L B G T V of prompts, and the prompts' lengths."""

    keys: Tensor
    values: Tensor
    lengths: Tensor


class CausalState:
    """Slots 0 .. num_sentences - 1 are in use; the rows of slot n are n * beam .. (n + 1) * beam - 1."""

    columns = None

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        capacity: tuple[int, int, int],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        layers, heads, key_width, value_width = shape
        num_sentences, self.beam, length = capacity
        self.num_sentences = 0
        rows = max(num_sentences * self.beam, FEWEST_ROWS)
        self.cache = KeyValueCache((layers, rows, heads, padded_length(length), key_width), value_width, device, dtype)

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
        """The rows of a step: those in use, and a few more where they would be too few."""
        return max(self.num_sentences * self.beam, FEWEST_ROWS)

    def begin_step(self) -> list[LayerCache]:
        """The views that one step works on, layer by layer."""
        return self.cache.layers(self.rows)

    def end_step(self) -> None:
        """Every row in use is now one position longer."""
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


class DecoderOnly(nn.Module):
    """Token ids in, logits of the token that follows each out."""

    continues_text = True

    def __init__(self, config: DecoderOnlyConfig) -> None:
        super().__init__()
        self.config = config
        self.max_length = config.max_length
        width, vocabulary, stack = config.width, known_size(config.vocabulary_size), config.stack
        assert vocabulary is not None
        self.positions = stack_positions(config.positions, width, stack, config.max_length, causal=True)
        self.embedding = TokenEmbedding(
            nn.Embedding(vocabulary, width), self.positions, stack.dropout, config.embedding
        )
        self.blocks = self_stack(width, stack, self.positions)
        self.norm = final_norm(width, stack)
        self.output = nn.Linear(width, vocabulary, bias=False)
        self.apply(initialise)
        if not config.embedding.scaled:  # the same scale as GPT-2: the output layer, if tied, must not begin loud
            nn.init.normal_(self.embedding.table.weight, std=0.02)
        if config.tied_output:
            self.output.weight = self.embedding.table.weight
        if stack.norm == "pre":
            quieten(self.blocks)

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""
        return self.config.special_tokens

    def attention_functions(self) -> dict[str, Sequence[Attend]]:
        """The attention function that each layer holds, by the kind of attention."""
        return {"self": [block.attention.attend for block in self.blocks]}

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.table.weight.device

    def hidden(self, ids_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """The last block's output; `documents_BT` numbers the documents of rows that hold several.

        A document sees nothing of the others, and its positions begin at 0, as if it were alone.
        """
        positions, mask = torch.arange(ids_BT.shape[1], device=ids_BT.device), None
        if documents_BT is None:
            self.positions.cover(ids_BT.shape[1])
        else:  # a row may be longer than the scheme reaches, as long as no document is
            self.positions.extend(ids_BT.shape[1])
            mask = (documents_BT[:, :, None] == documents_BT[:, None])[:, None]
            positions = positions_in_documents(documents_BT)
        x_BTD = self.embedding(ids_BT, positions)
        return self.norm(self.blocks(x_BTD, mask, causal=True, positions=positions))

    def forward(self, ids_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """The logits B T V of the token that follows each position."""
        return self.output(self.hidden(ids_BT, documents_BT))

    def frame(self, source: Sequence[int]) -> tuple[list[int], int]:
        """All of a prompt but its last token is prefilled; without a prompt a new document begins."""
        whole = list(source) or [self.special_tokens.before_text]
        if not self.positions.extends and len(whole) > self.max_length:
            raise UserError(f"the prompt has {len(whole)} tokens, but max_length is {self.max_length}: shorten it")
        return whole[:-1], whole[-1]

    def longest_target(self, source_length: int) -> int | None:
        """What is left of the context, if the positions set a limit; the first step reads one more token."""
        return None if self.positions.extends else max(0, self.max_length - source_length - 1)

    def prefill(self, source_BS: Tensor, source_lengths_B: Tensor) -> PrefilledPrompts:
        """The keys and values of prompts."""
        length = padded_length(source_BS.shape[1])
        self.positions.extend(length)
        source_BS = F.pad(source_BS, (0, length - source_BS.shape[1]))
        positions = self.positions.places(length, source_BS.device)
        keys, values = self.blocks.prefill(self.embedding(source_BS, positions), positions)
        return PrefilledPrompts(keys, values, source_lengths_B)

    def new_state(self, num_sentences: int, beam: int, source_length: int, target_length: int) -> CausalState:
        """Preallocated room for that many prompts, samples of each, prompt tokens and new tokens."""
        length = source_length + target_length
        self.positions.extend(padded_length(length))
        capacity = num_sentences, beam, length
        dtype = stored_type(self.embedding.table.weight)
        return CausalState(self.blocks.cache_shape, capacity, self.device, dtype)

    def decoding_bytes(self, rows: int, length: int) -> int:
        """Bytes of decoding state that a prompt takes, with this many samples, and tokens both in it and after it."""
        layers, heads, key_width, value_width = self.blocks.cache_shape
        position = self.embedding.table.weight.itemsize * layers * heads * (key_width + value_width)
        return position * 2 * length * rows

    def step(self, tokens_R: Tensor, state: CausalState, rows_A: Tensor | None = None) -> Tensor:
        """The next logits of every row in use, R V, or of some, A V, given the last token of each."""
        caches = state.begin_step()
        tokens_R1 = F.pad(tokens_R, (0, state.rows - len(tokens_R)))[:, None]
        x_RD = self.embedding(tokens_R1, caches[0].positions_NQ)[:, 0]
        x_RD = self.blocks.step(x_RD, caches)
        state.end_step()
        x_RD = x_RD[: len(tokens_R)]
        x_AD = x_RD if rows_A is None else x_RD[rows_A]
        return self.output(self.norm(with_enough_rows(x_AD)))[: len(x_AD)]

    def resize_positions(self, length: int) -> None:
        """Make the model fit texts of up to `length` (see `layers/positions` for the rule)."""
        self.max_length = length
        self.positions.resize(length)


def positions_in_documents(documents_BT: Tensor) -> Tensor:
    """Where each token stands in its own document; the documents of a row follow each other."""
    places_T = torch.arange(documents_BT.shape[1], device=documents_BT.device)
    begins = torch.ones_like(documents_BT, dtype=torch.bool)
    begins[:, 1:] = documents_BT[:, 1:] != documents_BT[:, :-1]
    return places_T - torch.where(begins, places_T, 0).cummax(1).values
