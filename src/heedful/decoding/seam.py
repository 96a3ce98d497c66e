"""What decoding needs from a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from heedful.models.shortlist_output import OwnColumns
from heedful.text.special_tokens import SpecialTokens


class DecodingState(Protocol):
    """Slots for sentences, 0 .. num_sentences - 1 in use, each with a fixed number of rows."""

    num_sentences: int

    @property
    def columns(self) -> OwnColumns | None:
        """Which tokens the columns of logits stand for; None is the whole vocabulary."""

    def insert(self, slots: list[int], prefilled: Any, rows: list[int]) -> None:
        """Put row `rows[i]` of `prefilled` into slot `slots[i]`, at the start of its target."""

    def reorder(self, parents_R: Tensor) -> None:
        """Let row r continue from row `parents_R[r]` of the same sentence."""

    def select(self, slots: list[int]) -> None:
        """Keep these slots, in this order, at the front."""


class DecodingModel(Protocol):
    """A model that encodes once and then decodes one token per step."""

    @property
    def device(self) -> torch.device:
        """Where the model computes."""

    @property
    def continues_text(self) -> bool:
        """Whether a target continues its source, rather than translating it."""

    @property
    def special_tokens(self) -> SpecialTokens:
        """Where the vocabulary has its special tokens."""

    def longest_target(self, source_length: int) -> int | None:
        """The most target tokens that the model can take after such a source, if there is a limit."""

    def frame(self, source: Sequence[int]) -> tuple[list[int], int]:
        """What is to be prefilled for a source, and the token that the first step reads."""

    def prefill(self, source_BS: Tensor, source_lengths_B: Tensor) -> Any:
        """Encode framed sources, with padding after them."""

    def new_state(self, num_sentences: int, beam: int, source_length: int, target_length: int) -> DecodingState:
        """Room for that many sentences, rows of each, source tokens and target tokens."""

    def step(self, tokens_R: Tensor, state: Any, rows_A: Tensor | None = None) -> Tensor:
        """The next logits R V, given the last token of every row in use; the caller may overwrite them.

        With `rows_A`, only those of some rows, A V: what the others hold is no longer needed.
        """
