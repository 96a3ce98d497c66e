"""Recurrent sequence-to-sequence models with attention, which Transformers replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import known_size
from heedful.layers.attention import Attend
from heedful.layers.blocks import initialise
from heedful.layers.embeddings import TokenEmbedding
from heedful.layers.kv_cache import FEWEST_ROWS, padded_length, rows_of, with_enough_rows
from heedful.layers.masks import added_to_scores, given_lengths, padding_mask, whole_lengths
from heedful.layers.positions import PositionScheme
from heedful.layers.recurrent_stacks import AttentiveDecoder, BidirectionalEncoder
from heedful.settings.position_scheme import PositionSizes
from heedful.settings.recurrent import RecurrentConfig
from heedful.text.special_tokens import SpecialTokens


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
        self,
        widths: tuple[int, int, int],
        capacity: tuple[int, int, int],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        key_width, memory_width, state_width = widths
        num_sentences, self.beam, source_length = capacity
        self.num_sentences = 0
        self.fewest_sentences = -(-FEWEST_ROWS // self.beam)
        slots, length = max(num_sentences, self.fewest_sentences), padded_length(source_length)
        self.keys = torch.zeros(slots, length, key_width, dtype=dtype, device=device)
        self.memory = torch.zeros(slots, length, memory_width, dtype=dtype, device=device)
        # Unused slots see one key of zeros, so that rows that only pad a step stay finite.
        self.lengths = torch.ones(slots, dtype=torch.long, device=device)
        self.states = torch.zeros(slots * self.beam, state_width, dtype=dtype, device=device)

    def insert(self, slots: list[int], encoded: EncodedSources, rows: list[int]) -> None:
        """Put row `rows[i]` of `encoded` into slot `slots[i]`, at the start of its target."""
        slots_N = torch.tensor(slots, device=self.keys.device)
        rows_N = torch.tensor(rows, device=self.keys.device)
        length = encoded.keys.shape[1]
        # Under autocast, some layers give other types than others do; what is stored has that of the parameters.
        self.keys[slots_N, :length] = encoded.keys[rows_N].to(self.keys.dtype)
        self.memory[slots_N, :length] = encoded.memory[rows_N].to(self.memory.dtype)
        self.lengths[slots_N] = encoded.lengths[rows_N]
        states_RZ = encoded.states[rows_N].repeat_interleave(self.beam, 0)
        self.states[rows_of(slots_N, self.beam)] = states_RZ.to(self.states.dtype)
        self.num_sentences = max(self.num_sentences, max(slots) + 1)

    def begin_step(self) -> RecurrentStepView:
        """Views of the slots in use (and of a few more, where those would be fewer than `FEWEST_ROWS` rows)."""
        sentences = max(self.num_sentences, self.fewest_sentences)
        rows = sentences * self.beam
        lengths = self.lengths[:sentences]
        source = padded_length(int(lengths.max()))
        seen_NS = torch.arange(source, device=lengths.device) < lengths[:, None]
        mask = added_to_scores(seen_NS, self.keys.dtype)[:, None, None]
        return RecurrentStepView(
            rows, self.states[:rows], self.keys[:sentences, :source], self.memory[:sentences, :source], mask
        )

    def end_step(self, states_RZ: Tensor) -> None:
        """Every row has read one more token."""
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


class Recurrent(nn.Module):
    """Source ids and target ids in, logits of the next target ids out."""

    continues_text = False

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        self.max_length = config.max_length
        width, hidden, vocabulary = config.width, config.hidden_width, known_size(config.vocabulary_size)
        assert vocabulary is not None
        no_positions = PositionScheme(PositionSizes(width, width, config.max_length))
        target_table = nn.Embedding(vocabulary, width)
        source_table = target_table if config.shared_embeddings else nn.Embedding(vocabulary, width)
        self.source_embedding = TokenEmbedding(source_table, no_positions, config.encoder.dropout)
        self.target_embedding = TokenEmbedding(target_table, no_positions, config.decoder.dropout)
        self.encoder = BidirectionalEncoder(width, hidden, config.cell, config.encoder)
        self.decoder = AttentiveDecoder(width, hidden, config.cell, config.attention, config.decoder)
        self.bridge = nn.Linear(hidden, sum(self.decoder.state_widths))
        self.output = nn.Linear(width, vocabulary, bias=False)
        if config.tied_output:
            self.output.weight = target_table.weight
        self.apply(initialise)

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""
        return self.config.special_tokens

    def attention_functions(self) -> dict[str, Sequence[Attend]]:
        """The attention function that each layer holds, by the kind of attention."""
        return {"cross": [self.decoder.cross_attention.attend]}

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.target_embedding.table.weight.device

    def encode(self, source_BS: Tensor, lengths_B: Tensor) -> EncodedSources:
        """The encoder's outputs, what attention compares them by, and the states that the decoder starts from."""
        memory_BSW, last_BW = self.encoder(_embedded(self.source_embedding, source_BS), lengths_B)
        keys_BSK = self.decoder.cross_attention.keys(memory_BSW)
        return EncodedSources(keys_BSK, memory_BSW, lengths_B, torch.tanh(self.bridge(last_BW)))

    def hidden(self, source_BS: Tensor, target_BT: Tensor, source_lengths_B: Tensor | None = None) -> Tensor:
        """The decoder's output for whole batches; `target_BT` starts with the start token.

        Without lengths no source has padding.
        """
        source_lengths_B = whole_lengths(source_BS) if source_lengths_B is None else source_lengths_B
        encoded = self.encode(source_BS, source_lengths_B)
        mask = padding_mask(source_lengths_B, source_BS.shape[1])
        x_BTD = _embedded(self.target_embedding, target_BT)
        attention = self.decoder.cross_attention
        return self.decoder(x_BTD, encoded.states, lambda x: attention(x, encoded.keys, encoded.memory, mask))

    def forward(
        self, source_BS: Tensor, target_BT: Tensor, source_lengths_B: Tensor | Sequence[int] | None = None
    ) -> Tensor:
        """The logits B T V of the token that follows each target position."""
        lengths_B = given_lengths(source_lengths_B, source_BS)
        return self.output(self.hidden(source_BS, target_BT, lengths_B))

    def prefill(self, source_BS: Tensor, source_lengths_B: Tensor) -> EncodedSources:
        """Encode sentences, once, with a few empty ones where there are so few that kernels would round differently."""
        more = max(0, FEWEST_ROWS - len(source_BS))
        padding = padded_length(source_BS.shape[1]) - source_BS.shape[1]
        return self.encode(F.pad(source_BS, (0, padding, 0, more)), F.pad(source_lengths_B, (0, more), value=1))

    def new_state(self, num_sentences: int, beam: int, source_length: int, target_length: int) -> RecurrentState:
        """Preallocated room for that many sentences, beams and source tokens; target tokens need none."""
        hidden = self.config.hidden_width
        widths = (hidden, hidden, sum(self.decoder.state_widths))
        dtype = self.target_embedding.table.weight.dtype
        return RecurrentState(widths, (num_sentences, beam, source_length), self.device, dtype)

    def decoding_bytes(self, rows: int, length: int) -> int:
        """Bytes of decoding state that a sentence takes, with this many rows, and this many tokens on either side."""
        return self.target_embedding.table.weight.itemsize * (
            2 * length * self.config.hidden_width + rows * sum(self.decoder.state_widths)
        )

    def step(self, tokens_R: Tensor, state: RecurrentState, rows_A: Tensor | None = None) -> Tensor:
        """The next logits of every row in use, R V, or of some, A V, given the last token of each."""
        view = state.begin_step()
        sentences, width = view.key_NSK.shape[0], self.config.hidden_width

        def attend(x_RW: Tensor) -> Tensor:
            # The beams of a sentence are the queries of one attention: N beams W.
            x_NQW = x_RW.view(sentences, -1, width)
            return self.decoder.cross_attention(x_NQW, view.key_NSK, view.memory_NSW, view.mask_N11S).view(-1, width)

        tokens_R1 = F.pad(tokens_R, (0, view.rows - len(tokens_R)))[:, None]
        x_RD = _embedded(self.target_embedding, tokens_R1)[:, 0]
        output_RD, states_RZ = self.decoder.step(x_RD, view.states_RZ, attend)
        state.end_step(states_RZ)
        output_RD = output_RD[: len(tokens_R)]
        output_AD = output_RD if rows_A is None else output_RD[rows_A]
        return self.output(with_enough_rows(output_AD))[: len(output_AD)]

    def frame(self, source: Sequence[int]) -> tuple[list[int], int]:
        """What is encoded for a source, and the first token that the decoder reads."""
        return [*source, self.special_tokens.end], self.special_tokens.start

    def longest_target(self, source_length: int) -> int | None:
        """None: there are no positions that could set a limit."""
        return None

    def resize_positions(self, length: int) -> None:
        """Take texts of up to `length` in one piece."""
        self.max_length = length


def _embedded(embedding: TokenEmbedding, ids_BT: Tensor) -> Tensor:
    return embedding(ids_BT, torch.arange(ids_BT.shape[1], device=ids_BT.device))
