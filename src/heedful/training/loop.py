"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Generic

import numpy as np
from torch import nn

from heedful.errors import UserError
from heedful.inspection.attention.entropy import attention_entropy
from heedful.machine.devices import side_by_side_on
from heedful.models.weights_file import load_parameters, parameter_tensors
from heedful.tasks.task import AnyBatch, Indices, Task, Validation
from heedful.training.averaging import MovingAverage, mean_of_files
from heedful.training.checkpoint import (
    checkpoint_folders,
    drop_checkpoint,
    drop_checkpoints_after,
    is_whole,
    prune_checkpoints,
    recover_checkpoints,
    save_checkpoint,
)
from heedful.training.checkpoint_timer import CheckpointTimer
from heedful.training.config import TrainingConfig
from heedful.training.extension import Extension
from heedful.training.gradients import ParallelGradients
from heedful.training.limits import Clock, Limit
from heedful.training.metrics import MetricsFile
from heedful.training.observer import Observer
from heedful.training.optimizer import clip_gradients, make_optimizer, optimizer_tensors
from heedful.training.recovery import restore_checkpoint, restore_newest
from heedful.training.run_state import RunState
from heedful.training.schedule import learning_rate
from heedful.training.step import TrainingStep


class Trainer(Generic[AnyBatch]):
    """One run: takes steps until its limit, and can be stopped and continued after any of them."""

    def __init__(
        self,
        model: nn.Module,
        task: Task[AnyBatch],
        config: TrainingConfig,
        folder: Path,
        observer: Observer,
        clock: Clock,
        save_model: Callable[[dict[str, float]], None],
        extension: Extension | None = None,
    ) -> None:
        self.model, self.task, self.config, self.observer, self.clock = model, task, config, observer, clock
        self.save_model, self.extension = save_model, extension
        self.checkpoints = folder / "checkpoints"
        self.metrics = MetricsFile(folder / "metrics.jsonl")
        machine = config.machine
        assert machine.workers is not None and machine.threads is not None
        self.workers = machine.workers
        step = TrainingStep(model, task.loss, bf16=machine.precision == "bf16")
        self.gradients = ParallelGradients(step, machine.workers, machine.threads)
        self.optimizer = make_optimizer(model, config.optimizer)
        self.average = MovingAverage(model, config.ema_decay) if config.ema_decay else None
        self.limit = Limit(config.limit, config.saving, clock)
        self.state = RunState()
        self.stop_requested: Callable[[], bool] = lambda: False
        sizes = config.batches
        assert sizes.tokens_per_step is not None and sizes.tokens_per_batch is not None
        self.batches_per_step = max(1, round(sizes.tokens_per_step / sizes.tokens_per_batch))
        self.checkpoint_timer = CheckpointTimer(config.saving.checkpoint_seconds)
        # Of the steps that this process has taken.
        self._computed_tokens, self._computing_seconds = 0, 0.0

    def resume(self) -> bool:
        """Continue from the newest checkpoint that is whole, if there is one."""
        recover_checkpoints(self.checkpoints)
        restore = partial(restore_checkpoint, model=self.model, optimizer=self.optimizer, average=self.average)
        state = restore_newest(self.checkpoints, self.metrics, restore, self.observer.message)
        if state is None:
            return False
        self.state = state
        self.clock.before, self.limit.reserve = state.elapsed, state.reserve
        if self.extension and state.finished and self.extension.step == state.position.step:
            self.limit.reopen(state)
        self.save_kept()  # a kill may have come between the checkpoint and the model folder
        return True

    def run(self) -> bool:
        """Train to the end; False if it was asked to stop before that."""
        self.model.train()
        if self.state.position.step == 0:
            self.state.began = self.clock.elapsed()
        with ThreadPoolExecutor(1) as ahead:
            # One step at least: a budget may be used up by the preparation of the data.
            while not self.state.finished and (self.state.position.step == 0 or not self.limit.over(self.state)):
                self._epoch(ahead)
                if self.stop_requested() and not self.limit.over(self.state):
                    self.save()
                    return False
        if not self.state.finished:
            self._finish()
        return True

    def _epoch(self, ahead: ThreadPoolExecutor) -> None:
        """Take the steps that are left of the epoch, each batch prepared while the one before it computes."""
        position = self.state.position
        batches = self.task.epoch_batches(position.epoch)
        starts = range(position.batch, len(batches), self.batches_per_step)

        def prepare(start: int) -> Future[list[AnyBatch]]:
            return ahead.submit(self._collate, batches[start : start + self.batches_per_step], self.state.split)

        if not starts:
            raise UserError(f"the checkpoints in {self.checkpoints} are of other data: begin in another folder")
        coming, split = prepare(starts[0]), self.state.split
        for start in starts:
            if split != self.state.split:  # memory ran out after this one was prepared
                coming, split = prepare(start), self.state.split
            current = coming.result()
            before = self.limit.progress(self.state, len(batches))
            position.batch = start + self.batches_per_step
            if position.batch < len(batches):
                coming = prepare(position.batch)
            self._step(current, before)
            if position.batch >= len(batches):
                position.epoch, position.batch = position.epoch + 1, 0
            self._after_step(self.limit.progress(self.state, len(batches)))
            if self.stop_requested() or self.limit.over(self.state):
                return

    def _collate(self, batches: Sequence[Indices], split: int) -> list[AnyBatch]:
        parts = [part for indices in batches for part in np.array_split(indices, self.workers * split)]
        return [self.task.collate(part) for part in parts if len(part)]

    def _step(self, batches: list[AnyBatch], progress: float | None) -> None:
        """One optimizer step over some batches."""
        started = time.monotonic()
        position = self.state.position
        position.step += 1
        rate = learning_rate(self.config.schedule, self.task.width, position.step, progress, self.state.extended_at)
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        seed = self.config.seed * 1_000_003 + position.step
        loss = self.gradients.compute(batches, seed, self._note_split)
        norm = float(clip_gradients(self.model, self.config.optimizer.clip_norm))
        self._check(loss, norm)
        self.optimizer.step()
        if self.average:
            self.average.update(position.step)
        seconds = time.monotonic() - started
        tokens = sum(batch.num_tokens for batch in batches)
        self._computed_tokens += tokens
        self._computing_seconds += seconds
        row = {
            "step": position.step,
            "epoch": position.epoch,
            "loss": loss,
            "learning_rate": rate,
            "gradient_norm": norm,
            "target_tokens": sum(batch.num_targets for batch in batches),
            "unit": self.task.unit,
            "padding": 1 - sum(batch.num_real for batch in batches) / tokens,
            "seconds": seconds,
            "elapsed": self.clock.elapsed(),
        }
        self.metrics.write("train", row)
        self.observer.step(row, progress)

    def _note_split(self) -> None:
        self.state.split *= 4
        self.observer.message("a batch did not fit into memory: going on with parts of a quarter of the size")

    def _check(self, loss: float, norm: float) -> None:
        what = None
        if not math.isfinite(loss):
            what = f"the loss is {loss}"
        elif not math.isfinite(norm):
            what = f"the norm of the gradient is {norm}"
        elif loss > self.task.largest_loss:
            what = f"the loss has grown to {loss:.1f}, far above that of a random guess"
        if what:
            step = self.state.position.step
            self.metrics.write("failure", {"step": step, "reason": what})
            drop_checkpoint(self.checkpoints, step - 1)  # it holds the weights that gave this loss
            kept = checkpoint_folders(self.checkpoints)
            raise UserError(
                f"training went wrong at step {step}: {what}. "
                + (f"The last good checkpoint is {kept[-1]}" if kept else "No good checkpoint was saved before")
                + "; try a lower training.schedule.learning_rate in another folder"
            )

    def _after_step(self, progress: float | None) -> None:
        per_token = self._computing_seconds / self._computed_tokens
        self.limit.expect_validation(self.state, per_token * self.task.validation_tokens)
        due = self.limit.pass_validation(self.state, progress)
        if due or self.limit.over(self.state):
            with self._averaged():
                self._validate()
            self.state.validation_steps.append(self.state.position.step)
            # First the checkpoint, which knows of the best weights: a run that goes on from an older one could take
            # worse weights for the best, and put them in their place.
            self.save()
            self.save_kept()
        elif self.checkpoint_timer.due():
            self.save()

    def _averaged(self) -> AbstractContextManager[None]:
        return self.average.in_place() if self.average else nullcontext()

    def _validate(self) -> None:
        """Measure the weights as they are now, and note whether they are the best so far."""
        started = time.monotonic()
        self.model.eval()
        # In a worker, which can take again the memory that training has let go of.
        result, entropy = self.gradients.pool.submit(self._measure).result()
        self.model.train()
        self._note_if_best(result)
        took = time.monotonic() - started
        self.limit.note_validation(self.state, took)
        row = {
            "step": self.state.position.step,
            "loss": result.loss,
            "wrong": result.wrong,
            **result.scores,
            "input_gain": result.input_gain,
            "answers": result.answers and asdict(result.answers),
            "attention_entropy": entropy,
            "examples": result.examples,
            "seconds": took,
            "elapsed": self.clock.elapsed(),
        }
        self.metrics.write("validation", row)
        self.observer.validation(row, result.examples)

    def _measure(self) -> tuple[Validation, dict[str, list[float]]]:
        with side_by_side_on(self.workers):
            return self.task.validate(), attention_entropy(self.model, self.task.read_examples)

    def _note_if_best(self, result: Validation) -> None:
        if self.state.best_rank is None or result.rank < self.state.best_rank:
            self.state.best_rank, self.state.validations_since_best = result.rank, 0
            self.state.unsaved_scores = {"loss": result.loss, **result.scores}
        else:
            self.state.validations_since_best += 1

    def save_kept(self, averaged: bool = True) -> None:
        """Put the best weights, which the model has, into the model folder, unless they are there."""
        if self.state.unsaved_scores is not None:
            with self._averaged() if averaged else nullcontext():
                self.save_model(self.state.unsaved_scores)
            self.state.unsaved_scores = None

    def save(self) -> None:
        """Write a checkpoint, and remove those that are not needed any more."""
        with self.checkpoint_timer.saving():
            self.state.elapsed, self.state.metrics = self.clock.elapsed(), self.metrics.mark()
            tensors = {"model": parameter_tensors(self.model)}
            tensors["optimizer"] = optimizer_tensors(self.model, self.optimizer)
            if self.average:
                tensors["average"] = self.average.tensors
            save_checkpoint(self.checkpoints, self.state.position.step, tensors, self.state.to_dict())
            drop_checkpoints_after(self.checkpoints, self.state.position.step)
            prune_checkpoints(self.checkpoints, set(self._steps_to_average()))

    def _steps_to_average(self) -> list[int]:
        count = self.config.average_checkpoints
        return self.state.validation_steps[-count:] if count else []

    def _finish(self) -> None:
        """Measure the mean of the last checkpoints, where the recipe asks for it."""
        steps = self._whole_steps(self._steps_to_average())
        if len(steps) > 1:
            last = {name: tensor.clone() for name, tensor in parameter_tensors(self.model).items()}
            load_parameters(self.model, mean_of_files([self._model_file(step) for step in steps]))
            self.observer.message(f"the mean of the last {len(steps)} checkpoints:")
            self._validate()
            self.save_kept(averaged=False)
            load_parameters(self.model, last)
        self.state.finished = True
        self.save()

    def _whole_steps(self, steps: list[int]) -> list[int]:
        """The steps whose checkpoints are whole; the others are named."""
        damaged = [step for step in steps if not is_whole(self._model_file(step).parent)]
        for step in damaged:
            self.observer.message(
                f"the checkpoint {self._model_file(step).parent} is damaged: the mean of the last ones leaves it out"
            )
        return [step for step in steps if step not in damaged]

    def _model_file(self, step: int) -> Path:
        return self.checkpoints / f"step-{step:09d}" / "model.safetensors"
