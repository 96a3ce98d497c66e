"""Requests whose texts are made ready to be decoded, a few per turn, since a long one takes a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heedful.server.messages import Run
from heedful.server.worker.engine import MOST_SENTENCES, Engine
from heedful.server.worker.task import Reply, Task
from heedful.server.worker.turns import Turns

# Sentences under way with a model, above which a request makes no more ready: others come between its texts.
ENOUGH_SENTENCES = 4 * MOST_SENTENCES
# Characters that are made ready in one turn, if one text has no more.
MOST_CHARACTERS = 2**12


@dataclass(eq=False)
class _Beginning:
    run: Run
    reply: Reply
    task: Task
    pauses: Iterator[int]


class Beginnings:
    """What is not all in the engine yet, each request in its turn."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.waiting: Turns[_Beginning] = Turns()

    @property
    def busy(self) -> bool:
        """Whether anything waits."""
        return bool(self.waiting)

    @property
    def num_waiting(self) -> int:
        """How many inputs wait."""
        return sum(len(each.run.inputs) * each.run.options.get("samples", 1) - each.task.begun for each in self.waiting)

    def add(self, run: Run, reply: Reply, task: Task) -> None:
        """Take a request."""
        self.waiting.add(_Beginning(run, reply, task, task.start()))

    def cancel(self, number: int) -> None:
        """Nobody waits for that request any more, or it has failed."""
        self.waiting.cancel(number)

    def step(self) -> None:
        """Make texts ready, each request in turn, of those whose models have not enough to do."""
        done = 0
        while done < MOST_CHARACTERS:
            under_way = self.engine.sentences_by_model()
            able = (each for each in self.waiting if under_way[each.run.model] < ENOUGH_SENTENCES)
            chosen = next(able, None)
            if chosen is None:
                return
            self.waiting.had(chosen)
            done += self._go_on(chosen)

    def _go_on(self, chosen: _Beginning) -> int:
        """Go on to the next pause; how many characters were made ready."""
        try:
            characters = next(chosen.pauses, None)
        except Exception as error:  # one request must not take the others along
            chosen.task.cancel()
            chosen.reply.failed(error)
            characters = None
        if characters is None:
            self.waiting.cancel(chosen.run.number)
        return characters or 0
