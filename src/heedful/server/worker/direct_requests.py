"""Requests computed directly, a bounded slice per turn, those of several clients together where they are alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heedful.server.messages import ModelRequest
from heedful.server.worker.memory_share import MemoryShare
from heedful.server.worker.reply import Reply
from heedful.server.worker.round_robin import RoundRobin
from heedful.tasks.direct_cost import MOST_WORK
from heedful.tasks.direct_verb import direct_verbs
from heedful.tasks.remarks import remarks

MOST_TOGETHER = 64


@dataclass(eq=False)
class _Part:
    """A part of a request, the answers computed so far, and the remarks on them."""

    reply: Reply
    answers: list[Any] = field(default_factory=list)
    remarks: list[tuple[int, str]] = field(default_factory=list)
    # Bytes that each input takes; counted at its first turn.
    sizes: list[int] | None = None

    @property
    def request(self) -> ModelRequest:
        """What is asked for."""
        return self.reply.request

    @property
    def left(self) -> list[Any]:
        """The inputs that are not computed yet."""
        return list(self.request.inputs[len(self.answers) :])


class DirectRequests:
    """What waits to be computed, each request in its turn."""

    def __init__(self, pipelines: dict[str, Any], memory: MemoryShare | None = None) -> None:
        self.pipelines, self.memory = pipelines, memory or MemoryShare()
        self.waiting: RoundRobin[_Part] = RoundRobin()

    @property
    def busy(self) -> bool:
        """Whether anything waits."""
        return bool(self.waiting)

    @property
    def num_waiting(self) -> int:
        """How many inputs wait."""
        return sum(len(part.left) for part in self.waiting)

    def add(self, reply: Reply) -> None:
        """Take the part of a request that `reply` answers."""
        self.waiting.add(_Part(reply))

    def cancel(self, number: int) -> None:
        """Nobody is waiting for the part with that number any more: the rest of it is dropped."""
        self.waiting.cancel(number)

    def step(self) -> None:
        """Compute a slice of the request whose turn it is, and of those like it, when there is memory for it."""
        first = next(iter(self.waiting), None)
        if first is None:
            self.memory.reserved = False  # whoever waited for it has left
            return
        if not self._has_room(first):
            return
        chosen = self._choose(first)
        self.waiting.had(first)
        try:
            self._compute(chosen)
        except Exception as error:  # one request must not take the others down with it
            if len(chosen) == 1:
                self._fail(first, error)
                return
            for part, count in chosen:
                try:
                    self._compute([(part, count)])
                except Exception as its_own:
                    self._fail(part, its_own)

    def _choose(self, first: _Part) -> list[tuple[_Part, int]]:
        """The parts to work on, and how many inputs of each: what fits into memory and one turn."""
        verb = direct_verbs()[first.request.verb]
        room = self.memory.total - self.memory.used
        count = work = size = 0
        chosen: list[tuple[_Part, int]] = []
        for part in list(self.waiting):
            if part is not first and not (verb.together and _alike(part.request, first.request)):
                continue
            sizes = self._sizes(part)
            if sizes is None:
                continue
            before, full = count, False
            for given, its_size in zip(part.left, sizes[len(part.answers) :], strict=True):
                its_work = verb.work(self.pipelines[part.request.model], given, part.request.options)
                full = count == MOST_TOGETHER or work + its_work > MOST_WORK or size + its_size > room
                if count and full:
                    break
                count, work, size = count + 1, work + its_work, size + its_size
            if count > before or not part.left:
                chosen.append((part, count - before))
            if full:
                break
        return chosen

    def _has_room(self, first: _Part) -> bool:
        """Whether what comes next fits beside what is decoded; what is too large is refused."""
        sizes = self._sizes(first)
        return sizes is not None and self.memory.has_room(max(sizes[len(first.answers) :], default=0))

    def _sizes(self, part: _Part) -> list[int] | None:
        """Bytes that it takes to compute each input; None for a request that is refused because of them."""
        if part.sizes is None:
            verb, pipeline = direct_verbs()[part.request.verb], self.pipelines[part.request.model]
            try:
                part.sizes = [verb.size(pipeline, each, part.request.options) for each in part.request.inputs]
            except Exception as error:
                self._fail(part, error)
        return part.sizes

    def _fail(self, part: _Part, error: Exception) -> None:
        self.waiting.remove(part)
        part.reply.failed(error)

    def _compute(self, chosen: list[tuple[_Part, int]]) -> None:
        request = chosen[0][0].request
        inputs = [each for part, count in chosen for each in part.left[:count]]
        with remarks() as found:
            answers = direct_verbs()[request.verb].compute(self.pipelines[request.model], inputs, request.options)
        begin = 0
        for part, count in chosen:
            end, done = begin + count, len(part.answers)
            part.remarks += [(done + place - begin, text) for place, text in found if begin <= place < end]
            part.answers += answers[begin:end]
            begin = end
            if not part.left:
                self.waiting.remove(part)
                part.reply.remarks = part.remarks
                part.reply.done(part.answers)


def _alike(one: ModelRequest, other: ModelRequest) -> bool:
    return (one.model, one.verb, one.options) == (other.model, other.verb, other.options)
