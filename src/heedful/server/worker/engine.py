"""The decoding of one worker: a scheduler for each model and set of options, stepped in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from heedful.decoding.hypothesis import Hypothesis, Request
from heedful.decoding.lane import Watch
from heedful.decoding.options import DecodingOptions
from heedful.decoding.scheduler import Scheduler
from heedful.errors import UserError
from heedful.memory import out_of_memory
from heedful.models.memory_plan import sentences_that_fit

# Sentences of one set of options that are decoded side by side.
MOST_SENTENCES = 64


class Listener(Protocol):
    """Who asked for a sentence."""

    def done(self, index: int, hypotheses: list[Hypothesis]) -> None:
        """The sentence of that index is decoded."""

    def failed(self, error: Exception) -> None:
        """It will not be."""


@dataclass(frozen=True)
class _Place:
    scheduler: tuple[str, DecodingOptions]
    listener: Listener


class Engine:
    """Takes sentences at any time, and tells those who asked for them when they are done."""

    def __init__(self, models: dict[str, Any]) -> None:
        self.models = models
        self.schedulers: dict[tuple[str, DecodingOptions], Scheduler] = {}
        self.places: dict[int, _Place] = {}
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
        """Take requests, whose indices come from `indices`."""
        key = (model, options)
        if key not in self.schedulers:
            self.schedulers[key] = Scheduler(self.models[model], options, self._sentences(model, options))
        self.schedulers[key].add(requests, watch)
        self.places.update({request.index: _Place(key, listener) for request in requests})

    def _sentences(self, model: str, options: DecodingOptions) -> int:
        network = self.models[model]
        if not hasattr(network, "decoding_bytes"):
            return MOST_SENTENCES
        return min(MOST_SENTENCES, sentences_that_fit(network, options.rows, options.max_length))

    def cancel(self, index: int) -> None:
        """Nobody waits for that sentence any more."""
        place = self.places.pop(index, None)
        if place:
            self.schedulers[place.scheduler].cancel(index)

    def forget(self, index: int) -> None:
        """Whoever watches a sentence has given it up."""
        self.places.pop(index, None)

    def step(self) -> None:
        """One token of every sentence; schedulers without work are dropped."""
        for key, scheduler in list(self.schedulers.items()):
            if not scheduler.idle:
                self._step(key, scheduler)
            if scheduler.idle:
                self.schedulers.pop(key, None)

    def _step(self, key: tuple[str, DecodingOptions], scheduler: Scheduler) -> None:
        try:
            results = scheduler.step()
        except (UserError, MemoryError, RuntimeError) as error:
            if not isinstance(error, UserError) and not out_of_memory(error):
                raise
            self._drop(key, error)
            return
        self.tokens += scheduler.num_running + len(results)
        for result in results:
            place = self.places.pop(result.index, None)
            if place is None:  # another of its request's sentences has failed
                continue
            try:
                place.listener.done(result.index, result.hypotheses)
            except Exception as error:  # one request must not take the others along
                place.listener.failed(error)

    def _drop(self, key: tuple[str, DecodingOptions], error: Exception) -> None:
        """All sentences of a scheduler fail with it."""
        del self.schedulers[key]
        lost = {index: place for index, place in self.places.items() if place.scheduler == key}
        for index in lost:
            del self.places[index]
        for listener in {id(place.listener): place.listener for place in lost.values()}.values():
            listener.failed(error)
