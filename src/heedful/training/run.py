"""A run, from what its user asked for to a finished model folder."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import filelock
import torch

from heedful import __version__
from heedful.data.corpus import ParallelCorpus
from heedful.data.prepared import PreparedTranslation, PrepareOptions, prepare_translation
from heedful.data.report import DataSummary
from heedful.errors import UserError
from heedful.machine import flushed_denormals
from heedful.model_folder import ModelConfig, model_card, save_model_folder
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.tasks.translation_task import LearningSettings, TranslationTask
from heedful.training.limits import Clock
from heedful.training.loop import Observer, Trainer
from heedful.training.resolve import Choice, ResolvedRun, check_settings, choose_run, reload_run
from heedful.training.run_config import RunConfig, training_corpus, validation_corpus


class RunObserver(Observer, Protocol):
    """Who is told of what happens in a run, from reading the files on."""

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """Work on the data goes on."""

    def prepared(self, summary: DataSummary, report: Path) -> None:
        """The data is ready."""

    def chosen(self, choices: Sequence[Choice], resumed_at: int | None) -> None:
        """Training is about to begin, or to go on."""


@dataclass(frozen=True)
class TrainingResult:
    """The model folder, whether the run came to its end, and its best validation loss."""

    folder: Path
    finished: bool
    best_loss: float | None


def train(run: RunConfig, observer: RunObserver | None = None) -> TrainingResult:
    """Train a model, or continue the run that an earlier call with the same settings began in the same folder."""
    from heedful.training.display import display_on_stderr

    clock = Clock()
    observer = observer or display_on_stderr()
    check_settings(run.preset, run.settings)
    corpus, valid = training_corpus(run.data), validation_corpus(run.data)
    out = Path(run.out)
    with _locked(out):
        file = out / "run" / "config.json"
        saved = reload_run(run, file)  # first: what is refused must not touch the data
        data = _prepare(run, corpus, valid, out, observer, saved.data_key if saved else None)
        saved = saved or choose_run(run, data, file)
        resolved, choices = saved.resolved, saved.choices
        languages = corpus.source_language, corpus.target_language
        model, task = _build(resolved, data, languages, out)
        trainer = Trainer(model, task, resolved.training, out / "run", observer, clock)
        resumed = trainer.resume()
        observer.chosen(choices, trainer.state.position.step if resumed else None)
        with _stop_on_signals(trainer), flushed_denormals():
            finished = trainer.run()
    return TrainingResult(out, finished, trainer.state.best_loss)


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """The model folder, with a lock that ends with this process, however it ends."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: choose another folder with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / "run").is_dir():
        raise UserError(f"{out} already holds other files: choose another folder with --out")
    try:
        (out / "run").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from None
    lock = filelock.FileLock(out / "run" / "lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise UserError(f"another run is at work in {out}: wait for it, or choose another --out") from None
    try:
        yield
    finally:
        lock.release()


def _prepare(
    run: RunConfig,
    corpus: ParallelCorpus,
    valid: ParallelCorpus | None,
    out: Path,
    observer: RunObserver,
    expected_key: str | None,
) -> PreparedTranslation:
    model = run.settings.get("model", {})
    options = PrepareOptions(model.get("vocabulary_size"), model.get("max_length", PrepareOptions.max_length))
    data = prepare_translation(corpus, valid, out / "run", options, observer.preparing, expected_key=expected_key)
    observer.prepared(data.report, out / "run" / "data-report.jsonl")
    return data


def _build(
    resolved: ResolvedRun, data: PreparedTranslation, languages: tuple[str | None, str | None], out: Path
) -> tuple[EncoderDecoder, TranslationTask]:
    training = resolved.training
    if training.machine.threads:
        torch.set_num_threads(training.machine.threads)
    torch.manual_seed(training.seed)
    model = EncoderDecoder(resolved.model).to(training.machine.device)
    config = ModelConfig(
        resolved.model, heedful_version=__version__, source_language=languages[0], target_language=languages[1]
    )

    def save(scores: dict[str, float]) -> None:
        save_model_folder(out, model, data.tokenizer, config, model_card(config, out.name, scores, len(data.train)))

    assert training.batches.tokens_per_batch is not None
    learning = LearningSettings(
        training.batches.tokens_per_batch,
        training.label_smoothing,
        training.machine.precision == "bf16",
        training.seed,
    )
    return model, TranslationTask(model, data, learning, save)


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
