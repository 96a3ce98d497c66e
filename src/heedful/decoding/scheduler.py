"""The one loop of all decoding: requests come at any time, slots are kept full, results are there when done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import torch

from heedful.decoding.beam import BeamSearch
from heedful.decoding.hypothesis import Decoded, Request
from heedful.decoding.lane import Lane, LaneEntry, Room, Selection
from heedful.decoding.options import DecodingOptions
from heedful.decoding.progress import Watch
from heedful.decoding.sampling import Sampler
from heedful.decoding.seam import DecodingModel
from heedful.errors import UserError

# Requests drawn ahead and sorted by length, for each sentence decoded at a time.
WINDOW = 16
# Sources up to this length share one lane with all the slots; each doubling has a lane with half as many, so
# that a long line costs no more memory than many short ones, and nobody waits for it.
SHORT = 64


def decode(
    model: DecodingModel,
    requests: Iterable[Request],
    options: DecodingOptions,
    max_sentences: int,
) -> Iterator[Decoded]:
    """Decode requests, of which there may be any number, up to `max_sentences` at a time.

    Results come in the order in which they are done; each bears the index of its request. They do not depend
    on `max_sentences`, nor on the other requests or their order, as far as the model's logits do not. Samples
    depend on the index. Up to 16 times `max_sentences` requests are drawn ahead.
    """
    return chain.from_iterable(decode_stepwise(model, requests, options, max_sentences))


def decode_stepwise(
    model: DecodingModel,
    requests: Iterable[Request],
    options: DecodingOptions,
    max_sentences: int,
    watch: Watch | None = None,
) -> Iterator[list[Decoded]]:
    """The same as `decode`, with what is done after each step, if anything.

    `watch` is told of every sentence after each step that it goes on from, and may give it up.
    """
    return _run(Scheduler(model, options, max_sentences), requests, watch)


def _run(scheduler: Scheduler, requests: Iterable[Request], watch: Watch | None) -> Iterator[list[Decoded]]:
    """Draw, step, hand out, until nothing is left."""
    stream = iter(requests)
    window = WINDOW * scheduler.max_sentences
    while True:
        missing = window - scheduler.num_waiting
        # Whole windows, or at least halves: what is drawn by ones and twos cannot be sorted.
        if not scheduler.complete and missing >= window / 2:
            drawn = list(islice(stream, missing))
            scheduler.add(drawn, watch)
            scheduler.complete = len(drawn) < missing
        if scheduler.idle:
            return
        yield scheduler.step()


class Scheduler:
    """Decodes requests side by side, up to `max_sentences` at a time; they may be added and cancelled between steps.

    Once it is told that it is `complete`, that nothing more will come, its lanes take no more room than that needs.
    """

    def __init__(self, model: DecodingModel, options: DecodingOptions, max_sentences: int) -> None:
        if isinstance(max_sentences, bool) or not isinstance(max_sentences, int) or max_sentences < 1:
            raise UserError(f"max_sentences is {max_sentences!r}, but must be a whole number from 1 up")
        assert not getattr(model, "training", False), "a model decodes in evaluation mode"
        limit = model.longest_target(0)
        if limit is not None and options.min_length > limit:
            raise UserError(
                f"min_length is {options.min_length}, but the model takes {limit} target tokens at most: lower it"
            )
        self.model, self.options, self.max_sentences = model, options, max_sentences
        self.complete = False
        self.selection: Selection = (
            BeamSearch() if options.sampling is None else Sampler(options.sampling, options.nbest)
        )
        # Both by the longest source that the lanes take; of several lanes the last one is the largest.
        self.waiting: dict[int, deque[LaneEntry]] = {}
        self.lanes: dict[int, list[Lane]] = {}

    @property
    def num_waiting(self) -> int:
        """How many requests have not come to be encoded."""
        return sum(map(len, self.waiting.values()))

    @property
    def num_running(self) -> int:
        """How many sentences have a slot."""
        return sum(lane.num_running for lane in self._all_lanes())

    @property
    def num_slots(self) -> int:
        """How many sentences there is room for at present."""
        return sum(lane.room.sentences for lane in self._all_lanes())

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or under way."""
        return not self.num_waiting and not any(lane.running or lane.encoded for lane in self._all_lanes())

    def add(self, requests: Iterable[Request], watch: Watch | None = None) -> None:
        """Take requests, the longest of which go first; their indices must differ from all that are under way."""
        jobs = [self._plan(request, watch) for request in requests]
        jobs.sort(key=lambda job: -job.source_length)
        for job in jobs:
            self.waiting.setdefault(self._lane_length(job), deque()).append(job)

    def cancel(self, index: int) -> None:
        """Give up the request of that index, wherever it stands, if it is not done."""
        for waiting in self.waiting.values():
            for place, job in enumerate(waiting):
                if job.request.index == index:
                    del waiting[place]
                    return
        any(lane.cancel(index) for lane in self._all_lanes())

    # Inference mode is entered here, not around a loop: it must not reach the caller between two steps.
    @torch.inference_mode()
    def step(self) -> list[Decoded]:
        """Fill the free slots, decode one token of every sentence, and give those that are done."""
        for length in self.waiting.keys() | self.lanes.keys():
            self._fill(length, self.waiting.setdefault(length, deque()))
        self.waiting = {length: waiting for length, waiting in self.waiting.items() if waiting}
        for lane in self._all_lanes():
            lane.close_gaps()
        kept = {length: [lane for lane in lanes if lane.running] for length, lanes in self.lanes.items()}
        self.lanes = {length: lanes for length, lanes in kept.items() if lanes}
        return [done for lane in self._all_lanes() for done in lane.step()]

    def _all_lanes(self) -> list[Lane]:
        return [lane for lanes in self.lanes.values() for lane in lanes]

    def _fill(self, length: int, waiting: deque[LaneEntry]) -> None:
        """Put what waits into the largest lane; where that is full and could be larger, into a new one beside it.

        The smaller lanes take nothing more, and go when their last sentence is done.
        """
        lanes = self.lanes.setdefault(length, [])
        for lane in lanes[:-1]:
            lane.fill(deque())
        if lanes:
            if not self.complete and lanes[-1].num_free and lanes[-1].gathers(len(waiting)):
                return
            lanes[-1].fill(waiting)
        largest = lanes[-1].room.sentences if lanes else 0
        if waiting and largest < self._most_sentences(length):
            lanes.append(Lane(self.model, self.selection, self.options, self._room(length, max(1, 2 * largest))))
            lanes[-1].fill(waiting)

    def _plan(self, request: Request, watch: Watch | None) -> LaneEntry:
        request.check(self.model.special_tokens)
        prefix = len(request.prefix)
        prefilled, first = self.model.frame(request.source)
        longest = self._longest_target(len(prefilled), max(len(request.source), prefix), request.max_length)
        if prefix > longest:
            raise UserError(
                f"request {request.index}: its forced prefix has {prefix} tokens, more than the {longest} "
                "that its target may have; shorten the prefix, or raise max_length as far as the model allows"
            )
        return LaneEntry(request, prefilled, first, longest, watch)

    def _longest_target(self, source_length: int, length: int, own: int | None = None) -> int:
        longest = own if own is not None and self.options.max_length is None else self.options.longest_target(length)
        limit = self.model.longest_target(source_length)
        return longest if limit is None else min(longest, limit)

    def _lane_length(self, job: LaneEntry) -> int:
        needed = max(job.source_length, len(job.request.prefix) + 1)
        length = SHORT
        while length < needed or self._longest_target(0, length) < job.longest:
            length *= 2
        return length

    def _most_sentences(self, length: int) -> int:
        return max(1, self.max_sentences * SHORT // length)

    def _room(self, length: int, smallest: int) -> Room:
        waiting, most = self.waiting[length], self._most_sentences(length)
        if self.complete:
            # Nothing more will come: the lane need not be larger than what waits.
            source_length = max(job.source_length for job in waiting)
            longest = max(job.longest for job in waiting)
            return Room(min(most, len(waiting)), source_length, longest + 1)
        sentences = smallest
        while sentences < len(waiting):
            sentences *= 2
        return Room(min(most, sentences), length, self._longest_target(0, length) + 1)
