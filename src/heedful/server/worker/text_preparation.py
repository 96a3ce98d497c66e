"""Requests whose texts are made ready to be decoded, a few per turn, since a long one takes a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from heedful.server.messages import ModelRequest
from heedful.server.worker.engine import MOST_SENTENCES, Engine
from heedful.server.worker.round_robin import RoundRobin

# Sentences under way with a model, above which a request makes no more ready: others come between its texts.
ENOUGH_SENTENCES = 4 * MOST_SENTENCES
# Characters that are made ready in one turn, if one text has no more.
MOST_CHARACTERS = 2**12


class StepwiseWork(Protocol):
    """A part of a request that is decoded step by step."""

    @property
    def watched(self) -> bool:
        """Whether somebody waits for each of its tokens."""

    @property
    def begun(self) -> int:
        """How many of its texts were made ready."""

    def start(self) -> Iterator[int]:
        """Hand what is to be decoded to the engine, with pauses, and the characters made ready since the last one."""

    def cancel(self) -> None:
        """Nobody waits for it any more."""

    def failed(self, error: Exception) -> None:
        """Nothing comes of it."""


@dataclass(eq=False)
class _Unready:
    """A part that is not all in the engine yet, and its next pauses."""

    request: ModelRequest
    work: StepwiseWork
    pauses: Iterator[int]


class TextPreparation:
    """What is not all in the engine yet, each request in its turn."""

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
        """Nobody waits for the part of that number any more, or it has failed."""
        self.waiting.cancel(number)

    def step(self) -> None:
        """Make texts ready, each request in turn, of those whose models have not enough to do."""
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
        """Go on to the next pause; how many characters were made ready."""
        try:
            characters = next(chosen.pauses, None)
        except Exception as error:  # one request must not take the others along
            chosen.work.failed(error)
            characters = None
        if characters is None:
            self.waiting.cancel(chosen.request.number)
        return characters or 0
