"""The decoding of one worker: a scheduler for each model and set of options, stepped in turn, sharing the memory."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Protocol

from heedful.decoding.hypothesis import Hypothesis, Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.progress import SentenceProgress, Watch
from heedful.decoding.run import AnyScheduler, new_scheduler
from heedful.models.memory_plan import memory_share, sentences_that_fit
from heedful.server.worker.memory_share import MemoryShare

# Sentences with the same options that are decoded side by side.
MOST_SENTENCES = 64
# Tokens that every slot has room for.
SHORTEST = 64

# A model, the options, and whether somebody waits for each token: a stream does not queue for the slots of a batch.
SchedulerKey = tuple[str, DecodingOptions, bool]


class Listener(Protocol):
    """Who asked for a sentence."""

    def done(self, index: int, hypotheses: list[Hypothesis]) -> None:
        """The sentence with that index is decoded."""

    def failed(self, error: Exception) -> None:
        """It could not be decoded."""


@dataclass
class _Place:
    """Where a sentence is decoded and for whom; how much memory it takes, and whether it has that and is watched."""

    scheduler: SchedulerKey
    listener: Listener
    size: int = 0
    admitted: bool = True
    watched: bool = False


@dataclass
class _Group:
    """Requests that came together and wait for memory."""

    requests: deque[Request]
    watch: Watch | None


class Engine:
    """Takes sentences at any time, and tells those who asked for them when they are done."""

    def __init__(self, models: dict[str, Any]) -> None:
        self.models = models
        self.memory = MemoryShare(min((memory_share(each.device) for each in models.values()), default=math.inf))
        self.faults: list[tuple[Listener, Exception]] = []
        self.backlog: deque[_Group] = deque()
        self.schedulers: dict[SchedulerKey, AnyScheduler] = {}
        self.places: dict[int, _Place] = {}
        # How many sentences each model has under way or waiting, with and without somebody who watches them.
        self.sentences: Counter[tuple[str, bool]] = Counter()
        self.indices = count()
        self.tokens = 0

    @property
    def busy(self) -> bool:
        """Whether there is anything to decode."""
        return bool(self.places)

    def add(
        self,
        model: str,
        options: DecodingOptions,
        requests: Sequence[Request],
        listener: Listener,
        watch: Watch | None = None,
    ) -> None:
        """Take requests, whose indices come from `indices`; those for which there is no memory wait, in order."""
        watched = watch is not None
        key = (model, options, watched)
        for request in requests:
            size = self._size(model, options, request)
            self.places[request.index] = _Place(key, listener, size, admitted=False, watched=watched)
            self.sentences[model, watched] += 1
        guarded = watch and partial(self._watch, watch)
        self.backlog.append(_Group(deque(requests), guarded))
        self._admit()

    def _admit(self) -> None:
        """Hand as many of the waiting requests to their schedulers as there is memory for, counting all of them."""
        while self.backlog:
            group, chosen = self.backlog[0], []
            while group.requests:
                place = self.places.get(group.requests[0].index)
                if place is None:  # it has been cancelled
                    group.requests.popleft()
                    continue
                if not self.memory.take(place.size):
                    break
                place.admitted = True
                chosen.append(group.requests.popleft())
            self._hand_over(chosen, group.watch)
            if group.requests:
                return
            self.backlog.popleft()

    def _hand_over(self, requests: list[Request], watch: Watch | None) -> None:
        if not requests:
            return
        place = self.places[requests[0].index]
        try:
            self._scheduler(place.scheduler).add(requests, watch)
        except Exception as error:  # one request must not take the others down with it
            for request in requests:
                self._leave(request.index)
            place.listener.failed(error)

    def _scheduler(self, key: SchedulerKey) -> AnyScheduler:
        if key not in self.schedulers:
            model, options, _ = key
            self.schedulers[key] = new_scheduler(self.models[model], options, self._sentences(model, options))
        return self.schedulers[key]

    def _watch(self, watch: Watch, progress: SentenceProgress) -> bool:
        """Tell whoever watches a sentence; a fault there ends that request, after this step, and no other."""
        try:
            return watch(progress)
        except Exception as error:
            place = self._leave(progress.index)
            if place is not None:
                self.faults.append((place.listener, error))
            return False

    def _size(self, model: str, options: DecodingOptions, request: Request) -> int:
        network = self.models[model]
        if not hasattr(network, "decoding_bytes"):
            return 0
        length = max(len(request.source), len(request.prefix))
        longest = request.max_length if request.max_length is not None else options.longest_target(length)
        limit = network.longest_target(0)
        return int(network.decoding_bytes(options.rows, max(SHORTEST, length, min(longest, limit or longest))))

    def _leave(self, index: int) -> _Place | None:
        """A sentence is done or given up, and its memory is free."""
        place = self.places.pop(index, None)
        if place is not None:
            self.sentences[place.scheduler[0], place.watched] -= 1
            if place.admitted:
                self.memory.give(place.size)
        return place

    def _sentences(self, model: str, options: DecodingOptions) -> int:
        network = self.models[model]
        if not hasattr(network, "decoding_bytes"):
            return MOST_SENTENCES
        return min(MOST_SENTENCES, sentences_that_fit(network, options.rows, options.max_length))

    def cancel(self, index: int) -> None:
        """Nobody is waiting for that sentence any more."""
        place = self._leave(index)
        if place and place.admitted:
            self.schedulers[place.scheduler].cancel(index)

    def forget(self, index: int) -> None:
        """Whoever watches a sentence has given it up."""
        self._leave(index)

    def step(self) -> None:
        """One token of every sentence, or several where nobody waits for each; schedulers without work are dropped."""
        self._admit()
        watched = any(number for (_, watched), number in self.sentences.items() if watched)
        for key, scheduler in list(self.schedulers.items()):
            scheduler.takes_turns = watched
            if not scheduler.idle:
                self._step(key, scheduler)
            faults, self.faults = self.faults, []
            for listener, error in faults:
                listener.failed(error)
            if scheduler.idle:
                self.schedulers.pop(key, None)

    def _step(self, key: SchedulerKey, scheduler: AnyScheduler) -> None:
        before = scheduler.num_steps
        try:
            results = scheduler.step()
        except Exception as error:  # sentences that are computed together fail together, and no others
            self._drop(key, error)
            return
        self.tokens += scheduler.num_steps - before
        for result in results:
            place = self._leave(result.index)
            if place is None:  # another of its request's sentences has failed
                continue
            try:
                place.listener.done(result.index, result.hypotheses)
            except Exception as error:  # one request must not take the others down with it
                place.listener.failed(error)

    def _drop(self, key: SchedulerKey, error: Exception) -> None:
        """All sentences of a scheduler fail with it."""
        del self.schedulers[key]
        lost = {index: place for index, place in self.places.items() if place.scheduler == key and place.admitted}
        for index in lost:
            self._leave(index)
        for listener in {id(place.listener): place.listener for place in lost.values()}.values():
            listener.failed(error)
