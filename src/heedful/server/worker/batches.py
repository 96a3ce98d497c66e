"""Requests that are computed in one go, those of several clients together where they ask for the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from heedful.server.messages import Run
from heedful.server.worker.direct import DIRECT_VERBS
from heedful.server.worker.memory_share import MemoryShare
from heedful.server.worker.task import Reply, remarks

# Inputs that are computed between two decoding steps.
MOST_TOGETHER = 64


class Batches:
    """What waits to be computed, the oldest first."""

    def __init__(self, pipelines: dict[str, Any], memory: MemoryShare | None = None) -> None:
        self.pipelines, self.memory = pipelines, memory or MemoryShare()
        self.waiting: deque[tuple[Run, Reply]] = deque()

    @property
    def busy(self) -> bool:
        """Whether anything waits."""
        return bool(self.waiting)

    @property
    def num_waiting(self) -> int:
        """How many inputs wait."""
        return sum(len(run.inputs) for run, _ in self.waiting)

    def add(self, run: Run, reply: Reply) -> None:
        """Take a request."""
        self.waiting.append((run, reply))

    def cancel(self, number: int) -> None:
        """Nobody waits for that request any more."""
        self.waiting = deque(each for each in self.waiting if each[0].number != number)

    def step(self) -> None:
        """Compute the oldest request, and all that can be computed along with it, when there is memory for it."""
        if not self.waiting or not self._has_room(self.waiting[0]):
            return
        chosen = self._choose()
        try:
            self._compute(chosen)
        except Exception as error:  # one request must not take the others along
            if len(chosen) == 1:
                chosen[0][1].failed(error)
                return
            for each in chosen:
                try:
                    self._compute([each])
                except Exception as its_own:
                    each[1].failed(its_own)

    def _choose(self) -> list[tuple[Run, Reply]]:
        first = self.waiting[0][0]
        chosen: list[tuple[Run, Reply]] = []
        left: deque[tuple[Run, Reply]] = deque()
        room = MOST_TOGETHER
        for run, reply in self.waiting:
            alike = (run.model, run.verb, run.options) == (first.model, first.verb, first.options)
            if run is first or (alike and DIRECT_VERBS[run.verb].together and len(run.inputs) <= room):
                chosen.append((run, reply))
                room -= len(run.inputs)
            else:
                left.append((run, reply))
        self.waiting = left
        return chosen

    def _has_room(self, oldest: tuple[Run, Reply]) -> bool:
        """Whether the largest input of the oldest request fits beside what is decoded; what is too large is refused."""
        run, reply = oldest
        try:
            return self.memory.has_room(max((self._size(run, each) for each in run.inputs), default=0))
        except Exception as error:
            self.waiting.popleft()
            reply.failed(error)
            return False

    def _size(self, run: Run, given: Any) -> int:
        """Bytes that are taken to compute an input."""
        return DIRECT_VERBS[run.verb].size(self.pipelines[run.model], given, run.options)

    def _slices(self, run: Run, inputs: list[Any]) -> Iterator[slice]:
        """Neighbouring inputs that fit into the memory together, counted before they are computed."""
        begin, room = 0, self.memory.total - self.memory.used
        taken = 0
        for place, each in enumerate(inputs):
            size = self._size(run, each)
            if place > begin and taken + size > room:
                yield slice(begin, place)
                begin, taken = place, 0
            taken += size
        yield slice(begin, len(inputs))

    def _compute(self, chosen: list[tuple[Run, Reply]]) -> None:
        first = chosen[0][0]
        inputs = [each for run, _ in chosen for each in run.inputs]
        found: list[tuple[int, str]] = []
        answers: list[Any] = []
        for part in self._slices(first, inputs):
            with remarks() as new:
                answers += DIRECT_VERBS[first.verb].compute(self.pipelines[first.model], inputs[part], first.options)
            found += [(part.start + place, text) for place, text in new]
        begin = 0
        for run, reply in chosen:
            end = begin + len(run.inputs)
            reply.remarks = [(place - begin, text) for place, text in found if begin <= place < end]
            reply.done(answers[begin:end])
            begin = end
