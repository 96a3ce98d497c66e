"""A run, from what its user asked for to a finished model folder."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import filelock
import torch

from heedful.config import merge
from heedful.errors import UserError
from heedful.machine.devices import flushed_denormals
from heedful.model_folder import ModelConfig, check_model_folder, check_weights, load_tokenizer, save_model_folder
from heedful.models.families import FAMILIES
from heedful.storage import storage_error, writing
from heedful.tasks.job import Choice, Job, PreparedJob
from heedful.tasks.task import LearningSettings
from heedful.training.limits import Clock
from heedful.training.loop import Trainer
from heedful.training.observer import Observer
from heedful.training.resolve import asked_model_settings, check_settings
from heedful.training.run_config import RunConfig
from heedful.training.saved_run import SavedRun, new_run, reload_run, save_run


class RunObserver(Observer, Protocol):
    """Receives the events of a run, from the reading of the files on."""

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """Work on the data goes on."""

    def prepared(self, messages: Sequence[str]) -> None:
        """The data is ready; the messages tell what was changed or left out."""

    def chosen(self, choices: Sequence[Choice], resumed_at: int | None) -> None:
        """Training is about to begin, or to go on."""


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
    observer = observer or display_on_stderr()
    run = replace(run, settings=merge(run.data.base_settings(), run.settings))
    check_settings(run)
    run.data.check()
    out = Path(run.out)
    with _locked(out), writing(out / "run"):
        file = out / "run" / "config.json"
        found = reload_run(run, file)  # first: what is refused must not touch the data
        run, saved = found or (run, None)
        expected = saved.data_key if saved else None
        data = run.data.prepare(out / "run", asked_model_settings(run), observer.preparing, expected)
        observer.prepared(data.messages)
        saved = saved or new_run(run, data)
        config = data.model_config(saved.resolved.family, saved.resolved.model)
        trainer = _trainer(run.data, data, saved, config, out, observer, clock)
        save_run(run, saved, config, file)  # now that all fits together: what is refused leaves no run behind
        resumed = trainer.resume()
        if trainer.state.finished:
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
        if state.best_rank is None or state.validations_since_best or trainer.config.average_checkpoints:
            raise UserError(
                f"the run in {out} has finished, but {damage}; its last checkpoint does not have the weights that were "
                "best: put back a copy of the model, or begin in another folder"
            ) from None
        observer.message(f"{damage}: written again from the last checkpoint")
        state.unsaved_scores = {"loss": state.best_rank[-1]}
        trainer.save_kept()


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """The model folder, with a lock that ends with this process, however it ends."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: choose another folder with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / "run").is_dir():
        raise UserError(f"{out} already holds other files: choose another folder with --out")
    with writing(out / "run"):
        (out / "run").mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(out / "run" / "lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise UserError(f"another run is at work in {out}: wait for it, or choose another --out") from None
    except NotImplementedError:
        raise UserError(f"the file system of {out} has no locks: choose an --out on another one") from None
    except OSError as error:
        raise storage_error(error, out / "run" / "lock", written=True) from None
    try:
        yield
    finally:
        lock.release()


def _trainer(
    job: Job,
    data: PreparedJob,
    saved: SavedRun,
    config: ModelConfig,
    out: Path,
    observer: RunObserver,
    clock: Clock,
) -> Trainer[Any]:
    resolved, training = saved.resolved, saved.resolved.training
    if training.machine.threads:
        torch.set_num_threads(training.machine.threads)
    torch.manual_seed(training.seed)
    model = FAMILIES[resolved.family].build(resolved.model)
    job.start(model)
    model.to(training.machine.device)

    def save(scores: dict[str, float]) -> None:
        save_model_folder(out, model, data.tokenizer, config, data.card(config, out.name, scores))

    assert training.batches.tokens_per_batch is not None
    learning = LearningSettings(
        training.batches.tokens_per_batch,
        training.label_smoothing,
        training.seed,
    )
    task = data.task(model, learning)
    return Trainer(model, task, training, out / "run", observer, clock, save, saved.extension)


@contextmanager
def _stop_on_signals(trainer: Trainer[Any]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) lets the step end and the run be saved; the second one acts at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    stop = threading.Event()
    trainer.stop_requested = stop.is_set
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

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
