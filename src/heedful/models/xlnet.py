"""XLNet (Yang et al., 2019): tokens are predicted in any order, by a stream that knows only their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import known_size
from heedful.layers.attention import Attend
from heedful.layers.blocks import initialise
from heedful.layers.dropout import Dropout
from heedful.layers.kv_cache import padded_length, with_enough_rows
from heedful.layers.masks import causal_mask, left_to_right_mask
from heedful.layers.relative_attention import (
    STREAMS,
    RelativeBlock,
    Seen,
    Sight,
    distance_sinusoids,
    relative_shift,
    step_sight,
)
from heedful.models.decoder_only import CausalState, PrefilledPrompts
from heedful.settings.xlnet import XLNetConfig
from heedful.text.special_tokens import SpecialTokens


class RelativeState(CausalState):
    """A causal state with the keys L H X K of distances 0 .. X - 1, which are the same for all rows and steps."""

    def __init__(
        self, shape: tuple[int, int, int, int], capacity: tuple[int, int, int], distances_LHXK: Tensor
    ) -> None:
        super().__init__(shape, capacity, distances_LHXK.device, distances_LHXK.dtype)
        self.distances_LHXK = distances_LHXK


@dataclass(frozen=True)
class Reading:
    """The last output of the query stream, or of the contents without it; each layer's input; what its queries saw."""

    output: Tensor
    states: list[Tensor]
    seen: list[Seen]


class XLNet(nn.Module):
    """Token ids in; logits of the tokens at their own places out, or of the token that follows each."""

    continues_text = True

    def __init__(self, config: XLNetConfig) -> None:
        super().__init__()
        self.config = config
        self.max_length = config.max_length
        width, vocabulary, stack = config.width, known_size(config.vocabulary_size), config.stack
        self.embedding = nn.Embedding(vocabulary, width)
        # What the query stream begins with, whatever the token.
        self.query_embedding = nn.Parameter(torch.randn(width) * width**-0.5)
        self.dropout = Dropout(stack.dropout)
        self.blocks = nn.ModuleList(RelativeBlock(width, stack, config.segments) for _ in range(stack.num_layers))
        self.output = nn.Linear(width, vocabulary)
        self.apply(initialise)
        self.output.weight = self.embedding.weight

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""
        return self.config.special_tokens

    def attention_functions(self) -> dict[str, Sequence[Attend]]:
        """The attention function that each layer holds, by the kind of attention."""
        layers = [block.attention for block in cast(Sequence[RelativeBlock], self.blocks)]
        return {stream: [layer.attend[stream] for layer in layers] for stream in STREAMS}

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.weight.device

    def forward(
        self,
        ids_BT: Tensor,
        permutation_mask_BTT: Tensor | None = None,
        target_mapping_BPT: Tensor | None = None,
        memories: Sequence[Tensor] | None = None,
        segments_BT: Tensor | None = None,
    ) -> Tensor:
        """Logits B P V of the tokens that `target_mapping_BPT` picks, or, without it, B T V of the content stream.

        `permutation_mask_BTT` is True where a token may see another one; a content always sees itself.
        """
        T, M = ids_BT.shape[1], _length(memories)
        contents, queries = self._masks(ids_BT, permutation_mask_BTT, M)
        align, other = partial(relative_shift, num_keys=M + T), self._other_segment(ids_BT, M, segments_BT)
        content = Sight("content", align, contents, other_segment_B1TS=other)
        query = None
        if target_mapping_BPT is not None:
            query = Sight("query", align, queries, other_segment_B1TS=other, mapping_BPT=target_mapping_BPT)
        distances = torch.arange(M + T, -T, -1, device=ids_BT.device)
        return self.output(self._read(ids_BT, distances, content, query, memories).output)

    def _masks(
        self, ids_BT: Tensor, permutation_mask_BTT: Tensor | None, M: int
    ) -> tuple[Tensor | None, Tensor | None]:
        """What contents and queries may see: all of the memories, and parts of the text."""
        T = ids_BT.shape[1]
        mask = None if permutation_mask_BTT is None else permutation_mask_BTT[:, None]
        if self.config.causal:
            causal = causal_mask(T, T, ids_BT.device)
            mask = causal if mask is None else mask & causal
        if mask is None:
            return None, None
        contents = mask | torch.eye(T, dtype=torch.bool, device=mask.device)
        return F.pad(contents, (M, 0), value=True), F.pad(mask, (M, 0), value=True)

    def predict(
        self,
        ids_BT: Tensor,
        content_mask: Tensor,
        query_mask: Tensor,
        memories: Sequence[Tensor] | None = None,
        mapping_BPT: Tensor | None = None,
        *,
        causal: bool = False,
    ) -> Tensor:
        """What the output layer is applied to, in a query stream whose position t is at place t + 1.

        The masks B 1 T S say what the streams see of memories and contents; `causal` ones save half of the distances.
        """
        T, M = ids_BT.shape[1], _length(memories)
        align, other = partial(relative_shift, num_keys=M + T), self._other_segment(ids_BT, M, None)
        content = Sight("content", align, content_mask, 1, other)
        query = Sight("query", align, query_mask, 0, other, mapping_BPT)
        distances = torch.arange(M + T + 1, -1 if causal else -T, -1, device=ids_BT.device)
        return self._read(ids_BT, distances, content, query, memories).output

    def hidden(self, ids_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """What the output layer is applied to, to predict the token after each position from those up to it.

        This is left-to-right order. A document sees nothing of the others.
        """
        mask = left_to_right_mask(ids_BT, documents_BT)
        return self.predict(ids_BT, mask, mask, causal=True)

    @torch.no_grad()
    def remember(
        self, ids_BT: Tensor, documents_BT: Tensor | None = None, memories: Sequence[Tensor] | None = None
    ) -> list[Tensor]:
        """The memories B M D of a text that is read from left to right, one for each layer; no gradient flows back."""
        states = self._read_left_to_right(ids_BT, documents_BT, memories).states
        if memories is None:
            return states
        return [torch.cat(pair, dim=1) for pair in zip(memories, states, strict=True)]

    def _read_left_to_right(
        self, ids_BT: Tensor, documents_BT: Tensor | None, memories: Sequence[Tensor] | None
    ) -> Reading:
        T, M = ids_BT.shape[1], _length(memories)
        mask = F.pad(left_to_right_mask(ids_BT, documents_BT), (M, 0), value=True)
        other = self._other_segment(ids_BT, M, None)
        sight = Sight("content", partial(relative_shift, num_keys=M + T), mask, other_segment_B1TS=other)
        distances = torch.arange(M + T, -1, -1, device=ids_BT.device)
        return self._read(ids_BT, distances, sight, None, memories, only_states=True)

    def _read(
        self,
        ids_BT: Tensor,
        distances_X: Tensor,
        content: Sight,
        query: Sight | None,
        memories: Sequence[Tensor] | None,
        *,
        only_states: bool = False,
    ) -> Reading:
        """Both streams through all layers; the last layer's contents are left out where nothing needs them."""
        h_BTD = self.dropout(self.embedding(ids_BT))
        positions = 0 if query is None else ids_BT.shape[1]
        if query is not None and query.mapping_BPT is not None:
            positions = query.mapping_BPT.shape[1]
        g_BPD = self.dropout(self.query_embedding.expand(len(ids_BT), positions, -1))
        sinusoids_XD = self._sinusoids(distances_X)
        needed = len(self.blocks) - (only_states or query is not None)
        states, all_seen = [], []
        for layer, block in enumerate(self._blocks):
            attention = block.attention
            query_BHTK, key, value = attention.contents(h_BTD, None if memories is None else memories[layer])
            seen = Seen(key, value, attention.distances(sinusoids_XD))
            states.append(h_BTD)
            all_seen.append(seen)
            if query is not None:
                g_BPD = block(g_BPD, attention.queries(g_BPD), seen, query)
            if layer < needed:
                h_BTD = block(h_BTD, query_BHTK, seen, content)
        return Reading(self.dropout(h_BTD if query is None else g_BPD), states, all_seen)

    @property
    def _blocks(self) -> Sequence[RelativeBlock]:
        return cast(Sequence[RelativeBlock], self.blocks)

    def _sinusoids(self, distances_X: Tensor) -> Tensor:
        longest = self.config.clamp_length
        distances_X = distances_X if longest is None else distances_X.clamp(-longest, longest)
        return distance_sinusoids(distances_X, self.config.width).to(self.query_embedding.dtype)

    def _other_segment(self, ids_BT: Tensor, memory: int, segments_BT: Tensor | None) -> Tensor | None:
        """B 1 T S: whether a key is in another segment; memories, and everything without segments, are in segment 0.

        A score that all keys share changes no weight: without segments it is left out, except in training, for
        gradients of zero.
        """
        if not self.config.segments:
            assert segments_BT is None, "this model knows no segments"
            return None
        if segments_BT is None:
            if not self.training:
                return None
            segments_BT = torch.zeros_like(ids_BT)
        return (segments_BT[:, :, None] != F.pad(segments_BT, (memory, 0))[:, None])[:, None]

    def frame(self, source: Sequence[int]) -> tuple[list[int], int]:
        """All of a prompt but its last token is prefilled; without a prompt a new document begins."""
        whole = list(source) or [self.special_tokens.before_text]
        return whole[:-1], whole[-1]

    def longest_target(self, source_length: int) -> int | None:
        """What is left of the context; the first step reads one more token."""
        return max(0, self.max_length - source_length - 1)

    def prefill(self, source_BS: Tensor, source_lengths_B: Tensor) -> PrefilledPrompts:
        """The keys and values of prompts' contents."""
        source_BS = F.pad(source_BS, (0, padded_length(source_BS.shape[1]) - source_BS.shape[1]))
        seen = self._read_left_to_right(source_BS, None, None).seen
        keys, values = torch.stack([each.key_BHSK for each in seen]), torch.stack([each.value_BHSV for each in seen])
        return PrefilledPrompts(keys, values, source_lengths_B)

    def new_state(self, num_sentences: int, beam: int, source_length: int, target_length: int) -> RelativeState:
        """Preallocated room for that many prompts, samples of each, prompt tokens and new tokens."""
        length = source_length + target_length
        sinusoids_XD = self._sinusoids(torch.arange(padded_length(length + 1), device=self.device))
        distances_LHXK = torch.stack([block.attention.distances(sinusoids_XD) for block in self._blocks]).detach()
        (heads, key_width), _, (_, value_width) = self._blocks[0].attention.parts
        shape = (len(self.blocks), heads, key_width, value_width)
        return RelativeState(shape, (num_sentences, beam, length), distances_LHXK)

    def step(self, tokens_R: Tensor, state: RelativeState, rows_A: Tensor | None = None) -> Tensor:
        """The next logits of every row in use, R V, or of some, A V, given the last token of each."""
        caches = state.begin_step()
        h_R1D = self.embedding(F.pad(tokens_R, (0, state.rows - len(tokens_R))))[:, None]
        x_R2D = torch.cat([h_R1D, self.query_embedding.expand_as(h_R1D)], dim=1)
        sight = step_sight(caches[0])
        for block, cache, distances in zip(self._blocks, caches, state.distances_LHXK, strict=True):
            x_R2D = block.step(x_R2D, cache, distances, sight)
        state.end_step()
        x_RD = x_R2D[: len(tokens_R), 1]
        x_AD = x_RD if rows_A is None else x_RD[rows_A]
        return self.output(with_enough_rows(x_AD))[: len(x_AD)]

    def resize_positions(self, length: int) -> None:
        """Make the model take texts of up to `length`: distances have no limit."""
        self.max_length = length


def _length(memories: Sequence[Tensor] | None) -> int:
    return 0 if memories is None else memories[0].shape[1]
