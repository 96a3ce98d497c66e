"""Sentences of similar length that are decoded side by side: their slots, and what waits for one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.decoding.hypothesis import Decoded, Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.progress import Watch
from heedful.decoding.repetition import against_repetition
from heedful.decoding.seam import DecodingModel
from heedful.decoding.slots import Children, Slots
from heedful.decoding.token_scores import TokenScores
from heedful.layers.blockwise_attention import KEYS_PER_BLOCK
from heedful.layers.kv_cache import padded_length

# About this many source tokens are encoded at a time: enough for large matrix products, yet little to hold.
TOKENS_PER_PREFILL = 2048
# Sentences are padded to the longest of those they are encoded with, by up to this share, or this few tokens.
LARGEST_PADDING, LITTLE_PADDING = 1 / 8, 128
# Requests that come while many sentences are under way are encoded once they are this share of them, or before this
# step after they came: one sentence costs nearly as much to encode as several.
SHARE_TO_GATHER = 1 / 8
STEPS_TO_GATHER = 4


class Selection(Protocol):
    """A way to choose the next tokens; `first_rows` is how many rows of a sentence run from the start."""

    first_rows: int

    def choose(self, scores: TokenScores, slots: Slots) -> Children:
        """The hypotheses of the coming step."""


@dataclass(frozen=True)
class SlotProgress:
    """The sentence in a slot as it is right after a step."""

    index: int
    slot: int
    slots: Slots
    scores: TokenScores

    @property
    def tokens(self) -> list[int]:
        """All tokens of the best hypothesis so far, which may have ended."""
        return self.slots.best_so_far(self.slot)

    @property
    def last(self) -> tuple[int, float]:
        """The last token of the best one that has not ended, and that token's log-probability."""
        token, _, score = self.slots.last_token(self.slot, self.slots.best_row(self.slot))
        return token, score

    def likeliest(self, count: int) -> list[tuple[int, float]]:
        """The likeliest tokens at the place of the last one, with their log-probabilities."""
        _, parent, _ = self.slots.last_token(self.slot, self.slots.best_row(self.slot))
        return self.scores.likeliest(self.slot * len(self.slots.own_rows) + parent, count)


@dataclass(frozen=True)
class LaneEntry:
    """A request, what of it is to be prefilled, what its first step reads, and the most tokens that it may get."""

    request: Request
    prefilled: list[int]
    first: int
    longest: int
    watch: Watch | None = None

    @property
    def source_length(self) -> int:
        """The number of tokens to be prefilled."""
        return len(self.prefilled)


@dataclass(frozen=True)
class Room:
    """How much a lane holds: sentences, prefilled tokens of each, target positions of each."""

    sentences: int
    source_length: int
    target_length: int


class Lane:
    """A decoding state, its search state, and encoded sentences that wait for a slot."""

    def __init__(self, model: DecodingModel, selection: Selection, options: DecodingOptions, room: Room) -> None:
        self.model, self.selection, self.options, self.room = model, selection, options, room
        self.shortest = options.min_length
        self.state = model.new_state(room.sentences, options.rows, room.source_length, room.target_length)
        self.slots = Slots(room.sentences, room.target_length, selection.first_rows, options, model.special_tokens.end)
        self.encoded: deque[tuple[Any, int, LaneEntry]] = deque()
        self.free: list[int] = []
        self.watches: dict[int, Watch] = {}
        # The text before what is decoded, for models that continue a text.
        self.texts: dict[int, list[int]] = {}
        self.steps_gathered = 0
        self.checked = False

    @property
    def num_free(self) -> int:
        """How many sentences could be put in at once."""
        return self.room.sentences - self.slots.used + len(self.free)

    @property
    def running(self) -> bool:
        """Whether any sentence is under way."""
        return self.num_running > 0

    @property
    def num_running(self) -> int:
        """How many sentences are under way."""
        return self.slots.used - len(self.free)

    def fill(self, waiting: deque[LaneEntry]) -> None:
        """Put waiting sentences into the free slots, encoding groups of them as needed."""
        while self.num_free and (waiting or self.encoded):
            if not self.encoded:
                self._encode(waiting)
            self._insert(min(self.num_free, len(self.encoded)))

    def gathers(self, num_waiting: int) -> bool:
        """Whether what waits should wait for more; called at most once before each step."""
        few = 0 < num_waiting < SHARE_TO_GATHER * self.num_running and not self.encoded
        self.steps_gathered = self.steps_gathered + 1 if few else 0
        if self.steps_gathered == STEPS_TO_GATHER:
            self.steps_gathered = 0
        return self.steps_gathered > 0

    def _encode(self, waiting: deque[LaneEntry]) -> None:
        jobs = self._group(waiting)
        lengths = [job.source_length for job in jobs]
        source_BS = np.full((len(jobs), max(lengths)), self.model.special_tokens.pad, np.int64)
        for row, job in enumerate(jobs):
            source_BS[row, : lengths[row]] = job.prefilled
        device = self.model.device
        prefilled = self.model.prefill(torch.from_numpy(source_BS).to(device), torch.tensor(lengths, device=device))
        self.encoded.extend((prefilled, row, job) for row, job in enumerate(jobs))

    def _group(self, waiting: deque[LaneEntry]) -> list[LaneEntry]:
        """Take the next sentences, as many as are best encoded together."""
        jobs = [waiting.popleft()]
        longest = tokens = jobs[0].source_length
        while waiting and len(jobs) < self.room.sentences:
            longest = max(longest, waiting[0].source_length)
            tokens += waiting[0].source_length
            padded = longest * (len(jobs) + 1)
            if longest > KEYS_PER_BLOCK and padded_length(longest) != padded_length(waiting[0].source_length):
                break  # how sums over so many keys are rounded depends on their number
            if padded > TOKENS_PER_PREFILL or padded - tokens > max(LITTLE_PADDING, LARGEST_PADDING * tokens):
                break
            jobs.append(waiting.popleft())
        return jobs

    def _insert(self, count: int) -> None:
        """Move encoded sentences, all from one group, into slots."""
        taken = [self.encoded.popleft() for _ in range(count)]
        fresh = count - len(self.free)
        slots = [*self.free[:count], *range(self.slots.used, self.slots.used + fresh)]
        self.free = self.free[count:]
        self.state.insert(slots, taken[0][0], [row for _, row, _ in taken])
        for slot, (_, _, job) in zip(slots, taken, strict=True):
            self.slots.open(slot, job.request, job.first, self.shortest, job.longest)
            before = [*job.prefilled, job.first] if self.model.continues_text else []
            # An empty text is read as the end of another one, which must not rule out its own end.
            self.texts[slot] = [token for token in before if token != self.slots.end]
            if job.watch:
                self.watches[job.request.index] = job.watch

    def cancel(self, index: int) -> bool:
        """Give up the sentence of that index, if it is here, and free its slot."""
        for place, (_, _, job) in enumerate(self.encoded):
            if job.request.index == index:
                del self.encoded[place]
                return True
        slot = self._slot(index)
        if slot is None:
            return False
        self.free.append(slot)
        self.watches.pop(index, None)
        return True

    def _slot(self, index: int) -> int | None:
        """The slot in which the sentence of that index is under way."""
        slots = np.flatnonzero(self.slots.sentences["index"][: self.slots.used] == index).tolist()
        return next((slot for slot in slots if slot not in self.free), None)

    def close_gaps(self) -> None:
        """Move the last sentences into slots that nothing waits for, so that no step wastes work."""
        if not self.free:
            return
        free = set(self.free)
        num_kept = self.slots.used - len(free)
        moved = iter([slot for slot in range(num_kept, self.slots.used) if slot not in free])
        kept = [next(moved) if slot in free else slot for slot in range(num_kept)]
        self.state.select(kept)
        self.slots.keep(kept)
        self.texts = {new: self.texts[old] for new, old in enumerate(kept)}
        self.free = []

    def step(self) -> list[Decoded]:
        """Decode one token of every sentence, and return those that are done; their slots are free."""
        assert not self.free
        slots, device = self.slots, self.model.device
        running_R = slots.totals[: slots.used].reshape(-1) > -np.inf
        rows_A = np.flatnonzero(running_R)
        some_A = None if running_R.all() else torch.from_numpy(rows_A).to(device)
        tokens_R = torch.from_numpy(slots.tokens[: slots.used].reshape(-1)).to(device)
        scores = TokenScores(self.model.step(tokens_R, self.state, some_A), rows_A, self._tokens_of(rows_A))
        if not self.checked:
            # Once, because it looks at all logits: if the weights of a token are wrong, they are so in every step.
            scores.check()
            self.checked = True
        children = self._children(scores)
        parents_NK, done = slots.advance(children)
        if (parents_NK != slots.own_rows).any():
            first_rows = np.arange(slots.used)[:, None] * len(slots.own_rows)
            self.state.reorder(torch.from_numpy((first_rows + parents_NK).reshape(-1)).to(device))
        self.free = done.tolist()
        decoded = [Decoded(int(slots.sentences["index"][slot]), slots.hypotheses(slot)) for slot in self.free]
        if self.watches:
            self._show([each.index for each in decoded], scores)
        return decoded

    def _tokens_of(self, rows_A: NDArray[np.intp]) -> Callable[[Tensor], Tensor] | None:
        columns = self.state.columns
        if columns is None:
            return None
        sentences_A = torch.from_numpy(rows_A // len(self.slots.own_rows)).to(self.model.device)
        return lambda columns_AC: columns.tokens(columns_AC, sentences_A)

    def _show(self, done: list[int], scores: TokenScores) -> None:
        """Report the watched sentences that go on, and give up those that their watch does not want more of."""
        for index in done:
            self.watches.pop(index, None)
        for index, watch in list(self.watches.items()):
            slot = self._slot(index)
            assert slot is not None
            if not watch(SlotProgress(index, slot, self.slots, scores)):
                self.cancel(index)

    def _rule_out_repetition(self, scores: TokenScores) -> None:
        forced = set(self.slots.forced.tolist())
        for place, row in enumerate(scores.rows_A.tolist()):
            slot, own_row = divmod(row, len(self.slots.own_rows))
            if slot in forced:  # a prefix may repeat itself
                continue
            text = [*self.texts[slot], *self.slots.tokens_so_far(slot, own_row)]
            against_repetition(
                scores.logits_AV[place], scores.peak_A1[place], scores.log_peak_A1[place], text, self.options
            )

    def _children(self, scores: TokenScores) -> Children:
        """The selection's choice, except where a prefix dictates the next token."""
        slots, device = self.slots, self.model.device
        early_N = slots.early
        early = early_N.repeat(len(slots.own_rows))[scores.rows_A] if early_N.any() else None
        scores.forbid(self.model.special_tokens, None if early is None else torch.from_numpy(early).to(device))
        if self.options.looks_back:
            self._rule_out_repetition(scores)
        children = self.selection.choose(scores, slots)
        forced = slots.forced
        if not len(forced):
            return children
        assert self.state.columns is None, "a prefix may hold any token"
        tokens_NK = children.tokens.copy()
        tokens_NK[forced] = slots.forced_tokens(forced)
        tokens_A1 = torch.from_numpy(tokens_NK.reshape(-1, 1)[scores.rows_A]).to(device)
        scores_NK = scores.spread(scores.log_probabilities(tokens_A1), tokens_NK.shape, -np.inf)
        merged = Children(children.parents.copy(), tokens_NK, children.scores.copy(), children.totals.copy())
        merged.parents[forced] = slots.own_rows
        merged.scores[forced] = scores_NK[forced]
        merged.totals[forced] = slots.totals[forced] + scores_NK[forced]
        return merged
