"""The Transformer of the paper: an encoder, a decoder, and the vocabulary's output layer."""

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
from heedful.layers.kv_cache import padded_length, stored_type, with_enough_rows
from heedful.layers.masks import added_to_scores, given_lengths, padding_mask
from heedful.layers.stacks import cross_stack, quieten, self_stack, stack_positions
from heedful.layers.tree_cache import TreeCache, TreeLayerCache
from heedful.models.shortlist_output import ShortlistOutput
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.position_scheme import table_length
from heedful.text.special_tokens import SpecialTokens


@dataclass(frozen=True)
class Prefilled:
    """Encoded sentences: for each layer cross-attention keys B H S K and values B H S V, the sources' lengths, and,
    with a shortlist, the tokens B C that they call for."""

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


class EncoderDecoderState:
    """Slots 0 .. num_sentences - 1 are in use; the rows of slot n are n * beam .. (n + 1) * beam - 1."""

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        capacity: tuple[int, int, int],
        device: torch.device,
        dtype: torch.dtype,
        shortlist: ShortlistOutput | None = None,
    ) -> None:
        layers, heads, key_width, value_width = shape
        sentences, self.beam, source_length = capacity
        self.num_sentences = 0
        source_length = padded_length(source_length)
        self.cache = TreeCache(shape, sentences, self.beam, device, dtype)
        self.keys = torch.zeros(layers, sentences, source_length, heads, key_width, dtype=dtype, device=device)
        self.values = torch.zeros(layers, sentences, source_length, heads, value_width, dtype=dtype, device=device)
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
        seen_NS = torch.arange(source, device=lengths.device) < lengths[:, None]
        mask = added_to_scores(seen_NS, self.keys.dtype)[:, None, None]
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
        """Every row in use is now one position longer."""
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


class EncoderDecoder(nn.Module):
    """Source ids and target ids in, logits of the next target ids out."""

    continues_text = False

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.max_length = config.max_length
        width, vocabulary = config.width, known_size(config.vocabulary_size)
        assert vocabulary is not None
        length = table_length(config.max_length + 1)  # one more for the end token
        source_positions = stack_positions(config.positions, width, config.encoder, length)
        target_positions = stack_positions(config.positions, width, config.decoder, length, causal=True)
        target_table = nn.Embedding(vocabulary, width)
        source_table = target_table if config.shared_embeddings else nn.Embedding(vocabulary, width)
        self.source_embedding = TokenEmbedding(source_table, source_positions, config.encoder.dropout, config.embedding)
        self.target_embedding = TokenEmbedding(target_table, target_positions, config.decoder.dropout, config.embedding)
        self.encoder = self_stack(width, config.encoder, source_positions)
        self.encoder_norm = final_norm(width, config.encoder)
        self.decoder = cross_stack(width, config.decoder, target_positions)
        self.decoder_norm = final_norm(width, config.decoder)
        self.output = nn.Linear(width, vocabulary, bias=config.output_bias)
        if config.tied_output:
            self.output.weight = target_table.weight
        self.shortlist: ShortlistOutput | None = None
        self.apply(initialise)
        if config.encoder.norm == "pre":
            quieten(self.encoder)
        if config.decoder.norm == "pre":
            quieten(self.decoder)

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""
        return self.config.special_tokens

    def attention_functions(self) -> dict[str, Sequence[Attend]]:
        """The attention function that each layer holds, by the kind of attention."""
        return {
            "encoder": [block.attention.attend for block in self.encoder],
            "decoder": [block.attention.attend for block in self.decoder],
            "cross": [block.cross_attention.attend for block in self.decoder],
        }

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.target_embedding.table.weight.device

    def encode(self, source_BS: Tensor, mask: Tensor | None) -> Tensor:
        """The encoder's output; `mask` is None when no row has padding."""
        self.source_embedding.positions.extend(source_BS.shape[1])
        positions_S = self.source_embedding.positions.places(source_BS.shape[1], source_BS.device)
        x_BSD = self.source_embedding(source_BS, positions_S)
        return self.encoder_norm(self.encoder(x_BSD, mask, positions=positions_S))

    def decode(self, target_BT: Tensor, memory_BSD: Tensor, memory_mask: Tensor | None) -> Tensor:
        """The decoder's output, before the output layer."""
        self.target_embedding.positions.cover(target_BT.shape[1], self.max_length)
        positions_T = torch.arange(target_BT.shape[1], device=target_BT.device)
        x_BTD = self.target_embedding(target_BT, positions_T)
        return self.decoder_norm(self.decoder(x_BTD, memory_BSD, memory_mask, positions=positions_T))

    def hidden(self, source_BS: Tensor, target_BT: Tensor, source_lengths_B: Tensor | None = None) -> Tensor:
        """The decoder's output for whole batches; `target_BT` starts with the start token.

        Without lengths no source has padding.
        """
        mask = None if source_lengths_B is None else padding_mask(source_lengths_B, source_BS.shape[1])
        return self.decode(target_BT, self.encode(source_BS, mask), mask)

    def forward(
        self, source_BS: Tensor, target_BT: Tensor, source_lengths_B: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """The logits B T V of the token that follows each target position."""
        self.source_embedding.positions.cover(source_BS.shape[1], self.max_length)
        lengths_B = given_lengths(source_lengths_B, source_BS)
        return self.output(self.hidden(source_BS, target_BT, lengths_B))

    def prefill(self, source_BS: Tensor, source_lengths_B: Tensor) -> Prefilled:
        """Encode sentences and compute their cross-attention keys and values, once."""
        source_BS = F.pad(source_BS, (0, padded_length(source_BS.shape[1]) - source_BS.shape[1]))
        memory_BSD = self.encode(source_BS, padding_mask(source_lengths_B, source_BS.shape[1], always=True))
        own_tokens = self.shortlist.own_tokens(source_BS, source_lengths_B) if self.shortlist else None
        return Prefilled(self.decoder.keys_values(memory_BSD), source_lengths_B, own_tokens)

    def new_state(self, num_sentences: int, beam: int, source_length: int, target_length: int) -> EncoderDecoderState:
        """Room for that many sentences, beams and source tokens; for target tokens it grows as needed."""
        self.target_embedding.positions.extend(padded_length(target_length))
        capacity = num_sentences, beam, source_length
        dtype = stored_type(self.target_embedding.table.weight)
        return EncoderDecoderState(self.decoder.cache_shape, capacity, self.device, dtype, self.shortlist)

    def decoding_bytes(self, rows: int, length: int) -> int:
        """Bytes of decoding state that a sentence takes, with this many rows, and this many tokens on either side."""
        layers, heads, key_width, value_width = self.decoder.cache_shape
        position = self.target_embedding.table.weight.itemsize * layers * heads * (key_width + value_width)
        # Self-attention for every row, cross-attention once per sentence.
        return position * length * (rows + 1)

    def step(self, tokens_R: Tensor, state: EncoderDecoderState, rows_A: Tensor | None = None) -> Tensor:
        """The next logits of every row in use, R V, or of some, A V, given the last token of each.

        With a shortlist they are those of the state's columns.
        """
        view = state.begin_step(rows_A)
        tokens_A = tokens_R if rows_A is None else tokens_R[rows_A]
        tokens, positions = with_enough_rows(tokens_A), with_enough_rows(view.positions_R)
        x_AD = self.target_embedding(tokens[:, None], positions[:, None])[:, 0]
        x_AD = self.decoder_norm(self.decoder.step(x_AD, view.caches, view.keys, view.values, view.source_mask))
        if self.shortlist and state.columns:
            logits_AV = self.shortlist.logits(x_AD, state.columns, view.caches[0])
        else:
            logits_AV = self.output(x_AD)
        state.end_step()
        return logits_AV[: len(tokens_A)]

    def frame(self, source: Sequence[int]) -> tuple[list[int], int]:
        """What is encoded for a source, and the first token that the decoder reads."""
        if not self.source_embedding.positions.extends and len(source) > self.max_length:
            raise UserError(f"the source has {len(source)} tokens, but max_length is {self.max_length}: shorten it")
        return [*source, self.special_tokens.end], self.special_tokens.start

    def longest_target(self, source_length: int) -> int | None:
        """The most target tokens that the model can take, if its positions set a limit."""
        return None if self.target_embedding.positions.extends else self.max_length

    def resize_positions(self, length: int) -> None:
        """Make the model fit sequences of up to `length` (see `layers/positions` for the rule)."""
        self.max_length = length
        for embedding in (self.source_embedding, self.target_embedding):
            embedding.positions.resize(table_length(length + 1))
