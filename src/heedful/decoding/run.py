"""The single entry to decoding, whichever engine computes: requests in, results out as they are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Protocol

from heedful.decoding.hypothesis import Decoded, Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.progress import Watch
from heedful.models.evaluation_mode import evaluation_mode

# Requests drawn ahead and sorted by length, per sentence decoded at a time.
WINDOW = 16


class AnyScheduler(Protocol):
    """Decodes requests side by side; they may be added and cancelled between steps.

    With `complete`, nothing more will come. With `takes_turns`, a step is one token of every sentence, because somebody
    waits for each token of another scheduler; otherwise it may be several, if nobody watches.
    """

    max_sentences: int
    complete: bool
    takes_turns: bool

    @property
    def num_waiting(self) -> int:
        """How many requests have not been encoded yet."""

    @property
    def num_running(self) -> int:
        """How many sentences have a slot."""

    @property
    def num_steps(self) -> int:
        """Steps of sentences so far."""

    @property
    def num_slots(self) -> int:
        """How many sentences there is room for at present."""

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or under way."""

    def add(self, requests: Iterable[Request], watch: Watch | None = None) -> None:
        """Take requests; their indices must differ from those of all under way."""

    def cancel(self, index: int) -> None:
        """Give up the request of that index, wherever it stands, if it is not done."""

    def step(self) -> list[Decoded]:
        """Continue every sentence, and return those that are done."""


def new_scheduler(model: Any, options: DecodingOptions, max_sentences: int) -> AnyScheduler:
    """The scheduler for a model: its own engine's, or torch's."""
    if hasattr(model, "new_scheduler"):
        own: AnyScheduler = model.new_scheduler(options, max_sentences)
        return own
    from heedful.decoding.scheduler import Scheduler

    return Scheduler(model, options, max_sentences)


def decode(model: Any, requests: Iterable[Request], options: DecodingOptions, max_sentences: int) -> Iterator[Decoded]:
    """Decode requests, of which there may be any number, up to `max_sentences` at a time.

    Results come in the order in which they are done; each has the index of its request. They do not depend on
    `max_sentences`, the other requests or their order, as far as the model's logits do not. Samples depend on the
    index. Up to 16 times `max_sentences` requests are drawn ahead.
    """
    return chain.from_iterable(decode_stepwise(model, requests, options, max_sentences))


def decode_stepwise(
    model: Any, requests: Iterable[Request], options: DecodingOptions, max_sentences: int, watch: Watch | None = None
) -> Iterator[list[Decoded]]:
    """The same as `decode`, but with a list of what is done after each step, which may be empty.

    `watch` is called for every sentence after each step that does not finish it, and may give it up.
    """
    steps = _run(new_scheduler(model, options, max_sentences), requests, watch)
    return _in_evaluation_mode(model, steps)


def _in_evaluation_mode(model: Any, steps: Iterator[list[Decoded]]) -> Iterator[list[Decoded]]:
    """The same steps; a model in training is in evaluation mode until nothing is left."""
    with evaluation_mode(model):
        yield from steps


def _run(scheduler: AnyScheduler, requests: Iterable[Request], watch: Watch | None) -> Iterator[list[Decoded]]:
    """Draw, step and hand out until nothing is left."""
    stream = iter(requests)
    window = WINDOW * scheduler.max_sentences
    while True:
        missing = window - scheduler.num_waiting
        # Whole windows, or at least halves: requests drawn by ones and twos cannot be sorted.
        if not scheduler.complete and missing >= window / 2:
            drawn = list(islice(stream, missing))
            scheduler.add(drawn, watch)
            scheduler.complete = len(drawn) < missing
        if scheduler.idle:
            return
        yield scheduler.step()
