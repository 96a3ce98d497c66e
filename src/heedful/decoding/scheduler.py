"""Decoding with torch: requests come at any time, slots are kept full, and results are returned when done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import torch

from heedful.decoding.beam import BeamSearch
from heedful.decoding.hypothesis import Decoded, Request
from heedful.decoding.lane import Lane, LaneEntry, Room, Selection
from heedful.decoding.options import DecodingOptions
from heedful.decoding.planning import check_options, longest_target, plan
from heedful.decoding.progress import Watch
from heedful.decoding.sampling import Sampler
from heedful.decoding.seam import DecodingModel

# Sources up to this length share a lane with all the slots; each doubling has a lane with half as many, so that a long
# line costs no more memory than many short ones, and nothing waits for it.
SHORT = 64


class Scheduler:
    """Decodes requests side by side, up to `max_sentences` at a time; they may be added and cancelled between steps.

    Once it is `complete`, which means that nothing more will come, its lanes take only the room needed.
    """

    def __init__(self, model: DecodingModel, options: DecodingOptions, max_sentences: int) -> None:
        check_options(model, options, max_sentences)
        self.model, self.options, self.max_sentences = model, options, max_sentences
        self.complete = False
        self.takes_turns = True  # a step is one token anyway
        self.num_steps = 0
        self.selection: Selection = (
            BeamSearch() if options.sampling is None else Sampler(options.sampling, options.nbest)
        )
        # Both keyed by the longest source that the lanes take; of several lanes the last is the largest.
        self.waiting: dict[int, deque[LaneEntry]] = {}
        self.lanes: dict[int, list[Lane]] = {}

    @property
    def num_waiting(self) -> int:
        """How many requests have not been encoded yet."""
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
        """Take requests, of which the longest go first; their indices must differ from those of all under way."""
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

    # Inference mode is entered here, not around a loop: it must not affect the caller between two steps.
    @torch.inference_mode()
    def step(self) -> list[Decoded]:
        """Fill the free slots, decode one token of every sentence, and return those that are done."""
        for length in self.waiting.keys() | self.lanes.keys():
            self._fill(length, self.waiting.setdefault(length, deque()))
        self.waiting = {length: waiting for length, waiting in self.waiting.items() if waiting}
        for lane in self._all_lanes():
            lane.close_gaps()
        kept = {length: [lane for lane in lanes if lane.running] for length, lanes in self.lanes.items()}
        self.lanes = {length: lanes for length, lanes in kept.items() if lanes}
        self.num_steps += self.num_running
        return [done for lane in self._all_lanes() for done in lane.step()]

    def _all_lanes(self) -> list[Lane]:
        return [lane for lanes in self.lanes.values() for lane in lanes]

    def _fill(self, length: int, waiting: deque[LaneEntry]) -> None:
        """Put waiting requests into the largest lane, or, if that is full and could be larger, into a new one beside
        it.

        The smaller lanes take no new requests, and go when their last sentence is done.
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
        planned = plan(request, self.model, self.options)
        return LaneEntry(request, planned.prefilled, planned.first, planned.longest, watch)

    def _longest_target(self, source_length: int, length: int) -> int:
        return longest_target(self.model, self.options, source_length, length)

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
