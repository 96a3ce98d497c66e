"""A network some of whose tensors are replaced, and how it decodes: whole sequences at every step, without a cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.inspection.trace.patches import Patches
from heedful.inspection.trace.tapping import tapped_view

# From a network, a source and its hypotheses B T to the logits B V of what follows each.
NextLogits = Callable[[Any, list[int], Tensor], Tensor]


@dataclass(frozen=True)
class Tracing:
    """What is special to the patched models of a task.

    `computation` makes the object that computes with a network one input at a time, without padding; `growing` are the
    sequences that are written token by token.
    """

    computation: Callable[[Any], Any]
    growing: tuple[str, ...] = ()
    next_logits: NextLogits | None = None


class WholeState:
    """What has been read so far: a source per slot, and tokens per row."""

    columns = None

    def __init__(self, beam: int) -> None:
        self.beam = beam
        self.sources: list[list[int]] = []
        self.rows: list[list[int]] = []

    @property
    def num_sentences(self) -> int:
        """How many slots are in use."""
        return len(self.sources)

    def insert(self, slots: list[int], prefilled: list[list[int]], rows: list[int]) -> None:
        """Put source `rows[i]` into slot `slots[i]`, at the start of its target."""
        for slot, row in zip(slots, rows, strict=True):
            missing = slot + 1 - len(self.sources)
            self.sources += [[] for _ in range(missing)]
            self.rows += [[] for _ in range(missing * self.beam)]
            self.sources[slot] = prefilled[row]
            self.rows[slot * self.beam : (slot + 1) * self.beam] = [[] for _ in range(self.beam)]

    def reorder(self, parents_R: Tensor) -> None:
        """Let row r continue from row `parents_R[r]`."""
        self.rows = [list(self.rows[parent]) for parent in parents_R.tolist()]

    def select(self, slots: list[int]) -> None:
        """Keep these slots, in this order."""
        self.rows = [row for slot in slots for row in self.rows[slot * self.beam : (slot + 1) * self.beam]]
        self.sources = [self.sources[slot] for slot in slots]


class PatchedNetwork:
    """A view of a network with patches; it passes on to the view what it does not do itself.

    A step computes a sentence's hypotheses from their start, without padding, so a tensor has the same axes in
    decoding as in a trace.
    """

    def __init__(self, network: Any, patches: Patches, next_logits: NextLogits | None = None) -> None:
        self.network, self.patches = network, patches
        self.view, names = tapped_view(network, patches)
        patches.check_names(names)
        self._next_logits = next_logits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["view"], name)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the view computes."""
        return self.view(*args, **options)

    def prefill(self, source_BS: Tensor, source_lengths_B: Tensor) -> list[list[int]]:
        """Sources as they are: they are encoded at every step."""
        rows = zip(source_BS.tolist(), source_lengths_B.tolist(), strict=True)
        return [row[:length] for row, length in rows]

    def new_state(self, num_sentences: int, beam: int, source_length: int, target_length: int) -> WholeState:
        """Room for sentences, which grows as needed."""
        return WholeState(beam)

    @torch.no_grad()
    def step(self, tokens_R: Tensor, state: WholeState, rows_A: Tensor | None = None) -> Tensor:
        """The next logits of every row in use, or of some, given the last token of each."""
        assert self._next_logits is not None, "this model does not decode"
        for row, token in zip(state.rows, tokens_R.tolist(), strict=True):
            row.append(token)
        wanted = range(len(state.rows)) if rows_A is None else rows_A.tolist()
        found: dict[int, Tensor] = {}
        for slot, source in enumerate(state.sources):
            own = [row for row in wanted if row // state.beam == slot]
            if own:
                ids_BT = torch.tensor([state.rows[row] for row in own], device=self.view.device)
                found |= dict(zip(own, self._next_logits(self.view, source, ids_BT), strict=True))
        return torch.stack([found[row] for row in wanted])


def patches_of(pipeline: Any) -> Patches | None:
    """The patches that a pipeline computes with, if it has any."""
    return pipeline.model.patches if isinstance(pipeline.model, PatchedNetwork) else None


def refuse_patched(network: Any) -> None:
    """Raise a UserError for a patched network: `attention` records with another view, which has no patches."""
    if isinstance(network, PatchedNetwork):
        raise UserError("`attention` ignores patches: use `trace` inside the block, which has all weights")
