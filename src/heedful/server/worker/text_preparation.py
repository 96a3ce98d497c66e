"""Requests whose texts are prepared for decoding, a few per turn, since a long one takes a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from heedful.server.messages import ModelRequest
from heedful.server.worker.engine import MOST_SENTENCES, Engine
from heedful.server.worker.round_robin import RoundRobin

# Sentences under way with a model, above which a request prepares no more: others come between its texts.
ENOUGH_SENTENCES = 4 * MOST_SENTENCES
# Characters that are prepared in one turn, unless a single text has more.
MOST_CHARACTERS = 2**12


class StepwiseWork(Protocol):
    """A part of a request that is decoded step by step."""

    @property
    def watched(self) -> bool:
        """Whether somebody is waiting for each of its tokens."""

    @property
    def begun(self) -> int:
        """How many of its texts are prepared."""

    def start(self) -> Iterator[int]:
        """Hand what is to be decoded to the engine, with pauses that give the characters prepared since the last."""

    def cancel(self) -> None:
        """Nobody is waiting for it any more."""

    def failed(self, error: Exception) -> None:
        """It has failed: report that."""


@dataclass(eq=False)
class _Unready:
    """A part that is not completely in the engine yet, and the pauses still to come."""

    request: ModelRequest
    work: StepwiseWork
    pauses: Iterator[int]


class TextPreparation:
    """What is not completely in the engine yet, each request in its turn."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.waiting: RoundRobin[_Unready] = RoundRobin()

    @property
    def busy(self) -> bool:
        """Whether anything waits."""
        return bool(self.waiting)

    @property
    def num_waiting(self) -> int:
        """How many inputs wait."""
        return sum(each.request.sentences - each.work.begun for each in self.waiting)

    def add(self, request: ModelRequest, work: StepwiseWork) -> None:
        """Take a part of a request."""
        self.waiting.add(_Unready(request, work, work.start()))

    def cancel(self, number: int) -> None:
        """Nobody is waiting for the part with that number any more, or it has failed."""
        self.waiting.cancel(number)

    def step(self) -> None:
        """Prepare texts of the requests whose models do not have enough to do, each in turn."""
        done = 0
        while done < MOST_CHARACTERS:
            under_way = self.engine.sentences
            able = (
                each for each in self.waiting if under_way[each.request.model, each.work.watched] < ENOUGH_SENTENCES
            )
            chosen = next(able, None)
            if chosen is None:
                return
            self.waiting.had(chosen)
            done += self._go_on(chosen)

    def _go_on(self, chosen: _Unready) -> int:
        """Go on to the next pause; returns how many characters were prepared."""
        try:
            characters = next(chosen.pauses, None)
        except Exception as error:  # one request must not take the others down with it
            chosen.work.failed(error)
            characters = None
        if characters is None:
            self.waiting.cancel(chosen.request.number)
        return characters or 0
