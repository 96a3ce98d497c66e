"""The one loop of all decoding: requests stream in, slots are kept full, results stream out when done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, islice

import torch

from heedful.decoding.beam import BeamSearch
from heedful.decoding.hypothesis import Decoded, Request
from heedful.decoding.lane import Job, Lane, Room, Selection, Watch
from heedful.decoding.options import DecodingOptions
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

    `watch`, for searches whose hypotheses do not compete (greedy and sampling), is told of every token as it
    is chosen, and may end a sample.
    """
    assert watch is None or options.beam == 1, "the beams of a search take each other's places"
    if isinstance(max_sentences, bool) or not isinstance(max_sentences, int) or max_sentences < 1:
        raise UserError(f"max_sentences is {max_sentences!r}, but must be a whole number from 1 up")
    assert not getattr(model, "training", False), "a model decodes in evaluation mode"
    limit = model.longest_target(0)
    if limit is not None and options.min_length > limit:
        raise UserError(
            f"min_length is {options.min_length}, but the model takes {limit} target tokens at most: lower it"
        )
    return _Scheduler(model, requests, options, max_sentences, watch).run()


class _Scheduler:
    def __init__(
        self,
        model: DecodingModel,
        requests: Iterable[Request],
        options: DecodingOptions,
        max_sentences: int,
        watch: Watch | None,
    ) -> None:
        self.model, self.options, self.max_sentences, self.watch = model, options, max_sentences, watch
        self.requests = iter(requests)
        self.exhausted = False
        self.selection: Selection = (
            BeamSearch() if options.sampling is None else Sampler(options.sampling, options.nbest)
        )
        # Both by the longest source that the lane takes.
        self.waiting: dict[int, deque[Job]] = {}
        self.lanes: dict[int, Lane] = {}

    def run(self) -> Iterator[list[Decoded]]:
        """Fill, step, hand out, until nothing is left."""
        while True:
            self._fill()
            if not self.lanes:
                return
            for lane in self.lanes.values():
                yield self._step(lane)

    # Inference mode is entered here, not around the loop: it must not reach the caller between two results.
    @torch.inference_mode()
    def _step(self, lane: Lane) -> list[Decoded]:
        return lane.step()

    @torch.inference_mode()
    def _fill(self) -> None:
        self._fill_lanes()
        # Whole windows, or at least halves: what is drawn by ones and twos cannot be sorted.
        idle = not self.lanes or any(lane.num_free for lane in self.lanes.values())
        if idle and not self.exhausted and self._num_missing >= WINDOW * self.max_sentences / 2:
            self._draw()
            self._fill_lanes()
        for lane in self.lanes.values():
            lane.close_gaps()
        self.lanes = {length: lane for length, lane in self.lanes.items() if lane.running}

    def _fill_lanes(self) -> None:
        for length, waiting in self.waiting.items():
            if waiting and length not in self.lanes:
                self.lanes[length] = Lane(self.model, self.selection, self.options, self._room(length), self.watch)
        for length, lane in self.lanes.items():
            lane.fill(self.waiting[length])

    @property
    def _num_missing(self) -> int:
        return WINDOW * self.max_sentences - sum(map(len, self.waiting.values()))

    def _draw(self) -> None:
        """Take requests ahead up to the window's size, and let the longest of the new ones go first."""
        missing = self._num_missing
        drawn = [self._plan(request) for request in islice(self.requests, missing)]
        self.exhausted = len(drawn) < missing
        drawn.sort(key=lambda job: -job.source_length)
        for job in drawn:
            self.waiting.setdefault(self._lane_length(job), deque()).append(job)

    def _plan(self, request: Request) -> Job:
        request.check(self.model.special_tokens)
        prefix = len(request.prefix)
        prefilled, first = self.model.frame(request.source)
        longest = self._longest_target(len(prefilled), max(len(request.source), prefix))
        if prefix > longest:
            raise UserError(
                f"request {request.index}: its forced prefix has {prefix} tokens, more than the {longest} "
                "that its target may have; shorten the prefix, or raise max_length as far as the model allows"
            )
        return Job(request, prefilled, first, longest)

    def _longest_target(self, source_length: int, length: int) -> int:
        longest = self.options.longest_target(length)
        limit = self.model.longest_target(source_length)
        return longest if limit is None else min(longest, limit)

    def _lane_length(self, job: Job) -> int:
        needed = max(job.source_length, len(job.request.prefix) + 1)
        length = SHORT
        while length < needed:
            length *= 2
        return length

    def _room(self, length: int) -> Room:
        sentences = max(1, self.max_sentences * SHORT // length)
        if not self.exhausted:
            return Room(sentences, length, self._longest_target(0, length) + 1)
        # Nothing more will come: the lane need not be larger than what waits.
        waiting = self.waiting[length]
        source_length = max(job.source_length for job in waiting)
        longest = max(job.longest for job in waiting)
        return Room(min(sentences, len(waiting)), source_length, longest + 1)
