"""A run, from what its user asked for to a finished model folder."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import torch

from heedful.config import merge
from heedful.errors import UserError
from heedful.machine.devices import choose_device, flushed_denormals
from heedful.machine.signals import ending_signals
from heedful.model_folder import ModelConfig, check_model_folder, check_weights, load_tokenizer, save_model_folder
from heedful.models.families import FAMILIES
from heedful.prepared.folder import Expected
from heedful.storage import writing
from heedful.tasks.job import Choice, Job, PreparedJob
from heedful.tasks.task import LearningSettings
from heedful.training.config import ParallelConfig
from heedful.training.limits import Clock
from heedful.training.lock import locked
from heedful.training.loop import Trainer
from heedful.training.observer import Observer
from heedful.training.parallel.drawing import Drawing
from heedful.training.parallel.layout import is_sharded
from heedful.training.parallel.rank_log import Both, RankLog
from heedful.training.parallel.world import ALONE, Processes, World, started_by_launcher
from heedful.training.resolve import asked_model_settings, check_layout, check_settings
from heedful.training.run_config import RunConfig
from heedful.training.saved_run import SavedRun, new_run, reload_run, run_in_words, run_of_words, save_run
from heedful.weights_writer import WeightStream

# How long processes that were cut off may take to end, after they have waited for the others in vain.
LOCK_SECONDS = 60.0


class RunObserver(Observer, Protocol):
    """Receives the events of a run, starting with the reading of its files."""

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """The preparation of the data has progressed."""

    def prepared(self, messages: Sequence[str]) -> None:
        """The data is ready; the messages say what was changed or left out."""

    def chosen(self, choices: Sequence[Choice], resumed_at: int | None) -> None:
        """Training is about to begin, or to continue."""


@dataclass(frozen=True)
class TrainingResult:
    """The model folder, whether the run came to its end, and the validation loss of the weights that it kept."""

    folder: Path
    finished: bool
    best_loss: float | None


def train(run: RunConfig, observer: RunObserver | None = None) -> TrainingResult:
    """Train a model, or continue the run that an earlier call with the same settings began in the same folder."""
    from heedful.training.display import display_on_stderr

    clock = Clock()
    run = replace(run, settings=merge(run.data.base_settings(), run.settings))
    check_settings(run)
    world = _enter_world(run)
    try:
        return _train(run, observer or display_on_stderr(), clock, world)
    finally:
        world.leave()


def _enter_world(run: RunConfig) -> World:
    """The processes that a launcher has started for this run; without one, this process alone."""
    if not started_by_launcher():
        return ALONE
    training = run.settings.get("training", {})
    timeout = training.get("parallel", {}).get("timeout_seconds", ParallelConfig.timeout_seconds)
    return Processes(choose_device(training.get("machine", {}).get("device", "auto")).type, timeout)


def _train(run: RunConfig, observer: RunObserver, clock: Clock, world: World) -> TrainingResult:
    """The run, as one of its processes: the first looks after the folder, the others read what it has written."""
    out = Path(run.out)
    file = out / "run" / "config.json"
    with ExitStack() as stack:
        ready: list[tuple[RunConfig, SavedRun, PreparedJob]] = []

        def prepare() -> None:
            run.data.check()
            if not file.exists():  # a continued run keeps its layout, where that is left open
                check_layout(run, world.size)
            stack.enter_context(locked(out, world.timeout + LOCK_SECONDS, observer.message))
            stack.enter_context(writing(out / "run"))
            ready.append(_prepare(run, file, observer, world.size))

        world.by_leader("prepare the data", prepare)
        if world is not ALONE:  # it may be the only one that is left of several
            log = RankLog(out / "run" / "logs" / f"rank-{world.rank}.log", world)
            observer = cast(RunObserver, Both(observer, log) if world.leads else log)
        told = world.share(run_in_words(ready[0][0], ready[0][1]) if ready else "")
        run, saved, data = ready[0] if ready else _open_prepared(run, told, out, observer)
        return _learn(run, saved, data, observer, clock, world)


def _prepare(
    run: RunConfig, file: Path, observer: RunObserver, processes: int
) -> tuple[RunConfig, SavedRun, PreparedJob]:
    """The run's choices and its data: those of an earlier start, or new ones, which are saved."""
    found = reload_run(run, file, processes)  # first: a refused run must not touch the data
    run, saved = found or (run, None)
    expected = Expected(saved.data_key) if saved else None
    data = run.data.prepare(file.parent, asked_model_settings(run), observer.preparing, expected)
    observer.prepared(data.messages)
    return run, saved or new_run(run, data, processes), data


def _open_prepared(
    run: RunConfig, told: str, out: Path, observer: RunObserver
) -> tuple[RunConfig, SavedRun, PreparedJob]:
    """The same in any process except the first, from the choices that the first one reports."""
    run, saved = run_of_words(run, told)
    expected = Expected(saved.data_key, is_checked=True)
    data = run.data.prepare(out / "run", asked_model_settings(run), observer.preparing, expected)
    return run, saved, data


def _learn(
    run: RunConfig, saved: SavedRun, data: PreparedJob, observer: RunObserver, clock: Clock, world: World
) -> TrainingResult:
    out = Path(run.out)
    config = data.model_config(saved.resolved.family, saved.resolved.model)
    trainer = _trainer(run.data, data, saved, config, out, observer, clock, world)
    # Only now that everything fits together: a refused run leaves nothing behind.
    if world.leads:
        save_run(run, saved, config, out / "run" / "config.json")
    resumed = trainer.resume()
    if trainer.state.finished and world.size == 1:
        _mend_model_folder(trainer, out, observer)
    observer.chosen(saved.choices, trainer.state.position.step if resumed else None)
    with _stop_on_signals(trainer), flushed_denormals():
        finished = trainer.run()
    if finished and (warning := trainer.limit.warning_of_preparation(trainer.state)):
        observer.message(warning)
    rank = trainer.state.best_rank
    return TrainingResult(out, finished, rank[-1] if rank else None)


def _mend_model_folder(trainer: Trainer[Any], out: Path, observer: RunObserver) -> None:
    """Write the model of a finished run again if it is damaged or gone, and the last checkpoint has it."""
    try:
        config, weights = check_model_folder(out), check_weights(out)
        if config.has_tokenizer:
            load_tokenizer(out, config, weights.metadata)
    except UserError as damage:
        state = trainer.state
        # Earlier versions could finish with weights that they had not validated.
        has_best = state.is_validated and state.validations_since_best == 0 and not trainer.config.average_checkpoints
        if state.best_rank is None or not has_best:
            raise UserError(
                f"the run in {out} has finished, but {damage}; its last checkpoint does not have the weights that were "
                "best: put back a copy of the model, or start in another folder"
            ) from None
        observer.message(f"{damage}: written again from the last checkpoint")
        state.unsaved_scores = {"loss": state.best_rank[-1]}
        trainer.save_kept()


def _trainer(
    job: Job,
    data: PreparedJob,
    saved: SavedRun,
    config: ModelConfig,
    out: Path,
    observer: RunObserver,
    clock: Clock,
    world: World,
) -> Trainer[Any]:
    resolved, training = saved.resolved, saved.resolved.training
    if training.machine.threads:
        torch.set_num_threads(training.machine.threads)
    torch.manual_seed(training.seed)
    drawing = None
    if is_sharded(training.parallel) and job.start_folder is None:
        drawing = Drawing(partial(FAMILIES[resolved.family].build, resolved.model), training.seed)
    model = drawing.unfilled() if drawing else FAMILIES[resolved.family].build(resolved.model)
    job.start(model)
    model.to(training.machine.device)

    def save(scores: dict[str, float], weights: WeightStream) -> None:
        card = data.card(config, out.name, scores)
        save_model_folder(out, weights, data.tokenizer, config, card, training.saving.shard_bytes)

    assert training.batches.tokens_per_batch is not None
    learning = LearningSettings(
        training.batches.tokens_per_batch,
        training.label_smoothing,
        training.seed,
    )
    task = data.task(model, learning)
    return Trainer(model, task, training, out / "run", observer, clock, save, saved.extension, world, drawing)


@contextmanager
def _stop_on_signals(trainer: Trainer[Any]) -> Iterator[None]:
    """The first Ctrl-C, SIGTERM or end of the terminal lets the step end and the run be saved; the next one acts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = threading.Event()
    trainer.stop_requested = stop.is_set
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *ending_signals())}

    def on_signal(number: int, frame: object) -> None:
        stop.set()
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
