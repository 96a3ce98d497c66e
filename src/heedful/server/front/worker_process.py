"""One worker as the front process sees it: its process, the connection, and what it is working on."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import Any

from heedful.errors import UserError
from heedful.machine.child_imports import safe_child_imports
from heedful.server.channel import frame, read_frame
from heedful.server.messages import Beat, Done, Failed, Leave, ModelCard, Partial, Ready, Refused
from heedful.server.settings import ENDING_SIGNALS, ServerSettings

# Partial answers that wait for a client, where each contains those before it.
MOST_REPLACED = 16


class WorkerLostError(Exception):
    """The worker that had the request is gone, and how."""


@dataclass
class PendingAnswer:
    """What a worker owes for a part of a request: how many sentences, its partial answers, and its last one."""

    number: int
    sentences: int
    answer: asyncio.Future[Done | Failed]
    partials: asyncio.Queue[Any] | None = None


# Compared by identity: two that are gone have the same fields, and are not the same.
@dataclass(eq=False)
class WorkerProcess:
    """A worker process and the answers that it owes."""

    settings: ServerSettings
    lost: Callable[[WorkerProcess, str], None]
    pending: dict[int, PendingAnswer] = field(default_factory=dict)
    models: list[ModelCard] = field(default_factory=list)
    device: str = ""
    ready: bool = False
    # Seconds since it was asked whether it is alive, without an answer.
    silence: float = 0.0
    asked: bool = False

    async def start(self) -> None:
        """Start the process, and wait until it has loaded its models."""
        own, its = socket.socketpair()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_work, args=(its, self.settings), name="heedful-worker", daemon=True)
        with its:
            try:
                with _blocked_signals(), safe_child_imports():
                    process.start()
            except BaseException:
                own.close()
                raise
        self.process = process  # only now: one that has not started cannot be ended
        self.reader, self.writer = await asyncio.open_connection(sock=own)
        try:
            (first,) = await read_frame(self.reader)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.writer.close()
            await asyncio.to_thread(self.process.join)
            raise UserError(_early_end(self.process.exitcode)) from None
        if isinstance(first, Refused):
            self.writer.close()
            raise UserError(first.message)
        assert isinstance(first, Ready)
        self.models, self.device, self.ready = first.models, first.device, True
        self.listening = asyncio.create_task(self._listen())

    @property
    def load(self) -> int:
        """How many inputs it has been given and not answered."""
        return sum(pending.sentences for pending in self.pending.values())

    def send(self, message: Any) -> None:
        """Send it a message, without waiting."""
        self.writer.write(frame([message]))

    async def _listen(self) -> None:
        try:
            while True:
                for message in await read_frame(self.reader):
                    self._take(message)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._end("ended unexpectedly")

    def beat(self, seconds: float) -> None:
        """Ask whether it is alive, or count the seconds since it was asked."""
        if self.asked:
            self.silence += seconds
        else:
            self.asked = True
            self.send(Beat())

    def give_up(self) -> None:
        """Kill a process that no longer answers; it may be stopped, so asking it to end would not help."""
        self.process.kill()
        self.listening.cancel()
        self._end(f"did not answer for {self.silence:.3g} seconds, and was ended")

    def _end(self, how: str) -> None:
        self.ready = False
        for pending in self.pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(WorkerLostError(how))
                if pending.partials:
                    pending.partials.put_nowait(None)
        self.pending.clear()
        self.writer.close()
        self.lost(self, how)

    def _take(self, message: Beat | Partial | Done | Failed) -> None:
        if isinstance(message, Beat):
            self.asked, self.silence = False, 0.0
            return
        pending = self.pending.get(message.number)
        if pending is None:  # it has been given up
            return
        if isinstance(message, Partial):
            assert pending.partials is not None
            if message.replaces and pending.partials.qsize() >= MOST_REPLACED:  # the client is slow
                pending.partials.get_nowait()
            pending.partials.put_nowait(message.value)
            return
        del self.pending[message.number]
        if not pending.answer.done():
            pending.answer.set_result(message)
        if pending.partials:
            pending.partials.put_nowait(None)

    async def stop(self) -> None:
        """Tell the worker to end, and see that it does; one that is still loading does not listen, and has no work."""
        if not self.ready and hasattr(self, "process"):
            self.process.kill()
        self.ready = False
        if hasattr(self, "listening"):
            self.listening.cancel()
        if hasattr(self, "writer"):
            self.send(Leave())
            self.writer.close()
        if hasattr(self, "process"):
            await asyncio.to_thread(self.process.join, 5)
            if self.process.is_alive():
                self.process.kill()


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Hold back signals that end processes, for good in those started here: a worker ends when it is told to."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # a helper process of multiprocessing, whose start would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _early_end(exit_code: int | None) -> str:
    """What to say of a worker that ended before it was ready, with that code, or by a signal if it is negative."""
    if exit_code is None or exit_code >= 0:
        how, why = f"ended with exit code {exit_code}", ": the reason is above in the log"
    else:
        name = signal.Signals(-exit_code).name
        how, why = f"was ended by {name}", ", perhaps for lack of memory" if name == "SIGKILL" else ""
    return f"a worker {how} before it had loaded its models{why}"


def _work(connection: socket.socket, settings: ServerSettings) -> None:
    # Imported in the worker, not above: the front process does without torch.
    from heedful.server.worker.loop import work

    work(connection, settings)
    os._exit(0)  # tearing torch down would take half a second
