"""The life of a worker: take what has come, make a text ready, decode a step, compute a slice, send what is done."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from heedful.core.model import CoreModel
from heedful.errors import UserError
from heedful.machine.devices import device_type, hold_to_one_thread
from heedful.machine.memory import keep_freed_memory, resident_memory
from heedful.model_folder import check_model_folder, check_weights
from heedful.models.parameter_count import counted_in
from heedful.server.channel import Channel
from heedful.server.messages import (
    AskState,
    Beat,
    Cancel,
    Done,
    Leave,
    ModelCard,
    ModelRequest,
    Partial,
    Ready,
    Refused,
    WorkerState,
)
from heedful.server.settings import ENDING_SIGNALS, ServerSettings
from heedful.server.worker.direct_requests import DirectRequests
from heedful.server.worker.engine import Engine
from heedful.server.worker.generation import GenerationWork
from heedful.server.worker.reply import Reply
from heedful.server.worker.text_preparation import StepwiseWork, TextPreparation
from heedful.server.worker.translation import TranslationWork
from heedful.tasks.computing import Precision
from heedful.tasks.direct_verb import direct_verbs
from heedful.tasks.engines import choose_engine
from heedful.tasks.loading import Pipeline, load_with
from heedful.tasks.registry import all_tasks

# The front process goes first: it has little to do, and everyone waits for it.
NICENESS = 5
# Seconds between the end of the connection to the front process and that of the front process itself, if it is ending.
FRONT_END_SECONDS = 5.0

STEPWISE_VERBS: dict[str, Callable[..., StepwiseWork]] = {"translate": TranslationWork, "generate": GenerationWork}


def work(connection: socket.socket, settings: ServerSettings) -> None:
    """Everything that a worker process does."""
    # Signals to the process group are for the front process, which tells its workers when to go.
    # Where signals can be blocked, they have been since this process started.
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    keep_freed_memory()
    channel = Channel(connection)
    try:
        try:
            loaded = {name: _load(folder, settings) for name, folder in settings.models.items()}
        except (UserError, OSError) as error:
            channel.send([Refused(_in_terms_of_originals(str(error), settings))])
            return
        cards = [_card(name, each, Path(settings.models[name])) for name, each in loaded.items()]
        channel.send([Ready(cards, device_type(settings.computing.device))])
        Worker(channel, {name: each.pipeline for name, each in loaded.items()}).run()
    except (EOFError, ConnectionError):
        _tidy_up(settings)


def _tidy_up(settings: ServerSettings) -> None:
    """Remove the copies of the models if the front process did not get to it, because it was killed."""
    front = multiprocessing.parent_process()
    if front is None or settings.private is None:
        return
    front.join(FRONT_END_SECONDS)
    if not front.is_alive():
        shutil.rmtree(settings.private, ignore_errors=True)


def _in_terms_of_originals(message: str, settings: ServerSettings) -> str:
    """A message that names the folders that the user knows, not their copies."""
    for name, copy in settings.models.items():
        message = message.replace(copy, settings.originals.get(name, copy))
    return message


@dataclass(frozen=True)
class _Loaded:
    """A model, the engine that computes with it, and its precision."""

    pipeline: Any
    engine: Literal["core", "torch"]
    precision: Precision


def _load(folder: str, settings: ServerSettings) -> _Loaded:
    config, wanted = check_model_folder(Path(folder)), settings.computing
    engine = choose_engine(wanted.engine, config, wanted.device)
    precision = wanted.precision if engine == "core" or config.family == "encoder_decoder" else "fp32"
    if engine == "torch":
        hold_to_one_thread()
    # The folders are the server's own, so its workers can share the weights.
    pipeline = load_with(folder, replace(wanted, precision=precision), shared=True)
    if isinstance(pipeline.model, CoreModel):
        pipeline.model.threads = 1  # there is a worker for each core
    return _Loaded(pipeline, engine, precision)


def _card(name: str, loaded: _Loaded, folder: Path) -> ModelCard:
    config, task = loaded.pipeline.config, all_tasks()[loaded.pipeline.config.task]
    return ModelCard(
        name,
        config.task,
        task.title,
        task.takes,
        task.gives,
        task.placeholder,
        config.family,
        counted_in(check_weights(folder).shapes),
        config.source_language,
        config.target_language,
        list(config.labels) or None,
        getattr(loaded.pipeline, "takes_pairs", False),
        [verb.name for verb in task.verbs],
        loaded.engine,
        loaded.precision,
    )


class Worker:
    """Models, and all that is asked of them."""

    def __init__(self, channel: Channel, pipelines: dict[str, Pipeline]) -> None:
        self.channel, self.pipelines = channel, pipelines
        self.engine = Engine({name: pipeline.model for name, pipeline in pipelines.items()})
        self.stepwise: dict[int, StepwiseWork] = {}
        self.direct = DirectRequests(pipelines, self.engine.memory)
        self.preparation = TextPreparation(self.engine)
        self.outbox: list[Any] = []

    def run(self) -> None:
        """Work until told to leave; `EOFError` if the front process is gone without a word."""
        while True:
            busy = self.engine.busy or self.direct.busy or self.preparation.busy
            for message in self.channel.receive(wait=not busy):
                if isinstance(message, Leave):
                    return
                self._take(message)
            self.preparation.step()
            self.engine.step()
            self.direct.step()
            outbox, self.outbox = self.outbox, []
            self.channel.send(outbox)

    def _take(self, message: ModelRequest | Cancel | AskState | Beat) -> None:
        if isinstance(message, Beat):
            self.outbox.append(message)
        elif isinstance(message, AskState):
            self.outbox.append(Done(message.number, self._state()))
        elif isinstance(message, Cancel):
            self.direct.cancel(message.number)
            self.preparation.cancel(message.number)
            work = self.stepwise.pop(message.number, None)
            if work:
                work.cancel()
        elif message.verb in direct_verbs():
            self.direct.add(Reply(message, self._send))
        else:
            self._begin(message)

    def _begin(self, request: ModelRequest) -> None:
        reply = Reply(request, self._send)
        try:
            work = STEPWISE_VERBS[request.verb](request, self.pipelines[request.model], self.engine, reply)
        except Exception as error:  # one request must not take the others down with it
            reply.failed(error)
            return
        self.stepwise[request.number] = work
        self.preparation.add(request, work)

    def _send(self, message: Any) -> None:
        if not isinstance(message, Partial):
            self.stepwise.pop(message.number, None)
            self.preparation.cancel(message.number)  # nothing more is prepared of a request that failed
        self.outbox.append(message)

    def _state(self) -> WorkerState:
        schedulers = self.engine.schedulers.values()
        waiting = sum(each.num_waiting for each in schedulers) + self.direct.num_waiting
        waiting += self.preparation.num_waiting
        running, slots = (sum(getattr(each, name) for each in schedulers) for name in ("num_running", "num_slots"))
        return WorkerState(waiting, running, slots, self.engine.tokens, resident_memory())
