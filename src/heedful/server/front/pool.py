"""All workers: who gets a request, how many may wait, and what happens when a worker dies."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Coroutine
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from heedful.machine.cores import available_cores
from heedful.server.front.errors import BAD_REQUEST, BUSY, REQUEST, TIMEOUT, UNAVAILABLE, ApiError, broken, try_again
from heedful.server.front.worker_process import PendingAnswer, WorkerLostError, WorkerProcess
from heedful.server.messages import AskState, Cancel, Done, Failed, ModelCard, ModelRequest, WorkerState
from heedful.server.settings import ServerSettings

# A request is spread over the workers in parts of at most this many inputs.
LARGEST_PART = 16
# Seconds until a worker that died is started again; twice as long each time, up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
# Seconds that a worker may take to report its state.
PATIENCE = 2.0
# Seconds between asking workers whether they are alive, and of silence after which one gets no more work.
BEAT, SUSPICIOUS = 1.0, 3.0
# A worker may take this many times as long to start again as the first one took to start, and at least these seconds.
SLOWEST_START, START_SECONDS = 10, 60.0


@dataclass(frozen=True)
class Answer:
    """An answer for each input, and remarks on some of them, in words."""

    values: list[Any]
    remarks: list[str]


class WorkerPool:
    """The workers of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.workers: list[WorkerProcess] = []
        self.models: dict[str, ModelCard] = {}
        self.numbers = count()
        self.closing = False
        self.restarts = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._start_seconds = START_SECONDS
        # Fractions of how long a worker may be silent at all, where that is short.
        self._beat = min(BEAT, self.limits.worker_seconds / 8)
        self._suspicious = min(SUSPICIOUS, self.limits.worker_seconds / 2)

    async def start(self) -> None:
        """Start all workers; a model that cannot be loaded is a UserError."""
        begin = time.monotonic()
        first = WorkerProcess(self.settings, self._lost)
        self.workers.append(first)
        try:
            await first.start()
            self._start_seconds = max(START_SECONDS, SLOWEST_START * (time.monotonic() - begin))
            number = self.settings.workers or (available_cores() if first.device == "cpu" else 1)
            others = [WorkerProcess(self.settings, self._lost) for _ in range(number - 1)]
            self.workers += others
            await asyncio.gather(*(worker.start() for worker in others))
        except BaseException:
            await self.stop()
            raise
        self.models = {card.name: card for card in first.models}
        self._begin(self._watch())

    async def stop(self) -> None:
        """End all workers; what they are working on is lost."""
        self.closing = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(worker.stop() for worker in self.workers))

    @property
    def load(self) -> int:
        """How many inputs were given to workers and are not answered."""
        return sum(worker.load for worker in self.workers)

    @property
    def responsive(self) -> list[WorkerProcess]:
        """The workers that answer when they are asked."""
        return [worker for worker in self.workers if worker.ready and worker.silence <= self._suspicious]

    async def run(self, request: ModelRequest) -> Answer:
        """The answer to a request, whose inputs are spread over the workers."""
        self._admit(request)
        size = min(LARGEST_PART, -(-len(request.inputs) // max(1, len(self.responsive))))
        begins = range(0, len(request.inputs), max(1, size))
        parts = [self._give(request, begin, begin + size, stream=False) for begin in begins]
        try:
            async with asyncio.timeout(self.limits.seconds):
                found = [await _result(pending) for _, pending in parts]
        except TimeoutError:
            raise self._too_late() from None
        finally:
            self._give_up(parts)
        remarks = [
            f"text {begin + place + 1} {text}"
            for begin, done in zip(begins, found, strict=True)
            for place, text in done.remarks
        ]
        return Answer([value for done in found for value in done.value], remarks)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Any]:
        """Partial answers as they come, and last of all the `Answer`."""
        self._admit(request)
        parts = [self._give(request, 0, len(request.inputs), stream=True)]
        pending = parts[0][1]
        assert pending.partials is not None
        try:
            async with asyncio.timeout(self.limits.seconds):
                while (value := await pending.partials.get()) is not None:
                    yield value
                done = await _result(pending)
        except TimeoutError:
            raise self._too_late() from None
        finally:
            self._give_up(parts)
        yield Answer(done.value, [f"text {place + 1} {text}" for place, text in done.remarks])

    async def states(self) -> list[WorkerState | None]:
        """The state of each worker; None where one does not answer."""
        return await asyncio.gather(*(self._state(worker) for worker in self.workers))

    async def _state(self, worker: WorkerProcess) -> WorkerState | None:
        if not worker.ready:
            return None
        pending = PendingAnswer(next(self.numbers), 0, asyncio.get_running_loop().create_future())
        worker.pending[pending.number] = pending
        worker.send(AskState(pending.number))
        try:
            async with asyncio.timeout(PATIENCE):
                state = (await pending.answer).value  # type: ignore[union-attr]
                assert isinstance(state, WorkerState)
                return state
        except (TimeoutError, WorkerLostError):
            return None
        finally:
            worker.pending.pop(pending.number, None)

    def _admit(self, request: ModelRequest) -> None:
        wanted = request.sentences
        if wanted > self.limits.queue:
            raise ApiError(BAD_REQUEST, f"this asks for {wanted} texts at a time: the server takes {self.limits.queue}")
        if self.closing:
            raise try_again(UNAVAILABLE, "the server is shutting down")
        if not any(worker.ready for worker in self.workers):
            raise try_again(UNAVAILABLE, "the workers are being started again: try again in a few seconds")
        if self.load + wanted > self.limits.queue:
            raise try_again(BUSY, f"{self.load} texts are waiting or under way already, and {self.limits.queue} may be")

    def _give(self, request: ModelRequest, begin: int, end: int, stream: bool) -> tuple[WorkerProcess, PendingAnswer]:
        """Give a part of a request to the worker that has the least to do."""
        ready = self.responsive or [each for each in self.workers if each.ready]
        worker = min(ready, key=lambda each: each.load)
        inputs, number = list(request.inputs[begin:end]), next(self.numbers)
        part = replace(request, inputs=inputs, number=number, first=begin, stream=stream, name=REQUEST.get())
        answer = asyncio.get_running_loop().create_future()
        pending = PendingAnswer(number, part.sentences, answer, asyncio.Queue() if stream else None)
        worker.pending[number] = pending
        worker.send(part)
        return worker, pending

    def _give_up(self, parts: list[tuple[WorkerProcess, PendingAnswer]]) -> None:
        """Let workers drop what is not answered: it took too long, the client is gone, or another part failed."""
        for worker, pending in parts:
            if worker.pending.pop(pending.number, None):
                worker.send(Cancel(pending.number))
            elif pending.answer.done() and not pending.answer.cancelled():
                pending.answer.exception()  # it counts as retrieved
            else:
                pending.answer.cancel()

    def _too_late(self) -> ApiError:
        return ApiError(TIMEOUT, f"there was no answer within {self.limits.seconds:g} seconds")

    async def _watch(self) -> None:
        """Keep asking workers whether they are alive, and give up those that do not answer."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(self._beat)
            # While this process itself was stopped (Ctrl-Z), the workers were not silent.
            seconds = min(time.monotonic() - before, 2 * self._beat)
            for worker in [each for each in self.workers if each.ready]:
                worker.beat(seconds)
                if worker.silence > self.limits.worker_seconds:
                    worker.give_up()

    def _lost(self, worker: WorkerProcess, how: str) -> None:
        """A worker is gone: another takes its place."""
        if self.closing:
            return
        print(f"heedful: a worker {how}: another one is started", file=sys.stderr, flush=True)
        self._begin(self._restart(self.workers.index(worker)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _restart(self, place: int) -> None:
        pause = FIRST_PAUSE
        while not self.closing:
            await asyncio.sleep(pause)
            self.restarts += 1
            self.workers[place] = worker = WorkerProcess(self.settings, self._lost)
            try:
                async with asyncio.timeout(self._start_seconds):
                    await worker.start()
                return
            except Exception as error:  # whatever it is, it may pass
                why = error or f"it took longer than {self._start_seconds:.3g} seconds"
                print(f"heedful: a worker could not be started: {why}", file=sys.stderr, flush=True)
                await worker.stop()
                pause = min(2 * pause, LONGEST_PAUSE)


async def _result(pending: PendingAnswer) -> Done:
    try:
        answer = await asyncio.shield(pending.answer)
    except WorkerLostError as error:
        raise try_again(UNAVAILABLE, f"the worker that had the request {error}: try again") from None
    if isinstance(answer, Failed):
        raise ApiError(BAD_REQUEST, answer.message) if answer.mistake else broken(answer.message)
    return answer
