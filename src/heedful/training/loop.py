"""The training loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Generic

from torch import nn

from heedful.errors import UserError
from heedful.inspection.attention.entropy import attention_entropy
from heedful.machine.devices import side_by_side_on
from heedful.machine.shared_work import Sharing, by_first, shared_work
from heedful.tasks.task import AnyBatch, Indices, Task, Validation
from heedful.training.checkpoint import checkpoint_path, drop_checkpoint, recover_checkpoints
from heedful.training.config import TrainingConfig
from heedful.training.divergence import divergence, divergence_error
from heedful.training.extension import Extension
from heedful.training.limits import Clock, Limit
from heedful.training.metrics import MetricsFile, validation_row
from heedful.training.observer import Observer
from heedful.training.parallel.drawing import Drawing
from heedful.training.parallel.world import ALONE, World
from heedful.training.parts import Parts, cut_parts
from heedful.training.recovery import restore_newest
from heedful.training.replica import make_learner
from heedful.training.resolve import batches_per_step
from heedful.training.run_state import RunState
from heedful.training.saving import Saver
from heedful.training.schedule import learning_rate
from heedful.weights_writer import WeightStream


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
        save_model: Callable[[dict[str, float], WeightStream], None],
        extension: Extension | None = None,
        world: World = ALONE,
        drawing: Drawing | None = None,
    ) -> None:
        self.model, self.task, self.config, self.observer, self.clock = model, task, config, observer, clock
        self.save_model, self.extension, self.world = save_model, extension, world
        self.checkpoints = folder / "checkpoints"
        self.metrics = MetricsFile(folder / "metrics.jsonl", world.leads)
        assert config.machine.workers is not None
        self.workers = config.machine.workers
        self.learner = make_learner(model, task, config, world, drawing)
        self.limit = Limit(config.limit, config.saving, clock)
        self.state = RunState()
        self._stopping = self._ended = False
        self.stop_requested: Callable[[], bool] = lambda: False
        self.batches_per_step = batches_per_step(config)
        self.saver = Saver(self.checkpoints, config.saving.checkpoint_seconds, world)
        self._computed_tokens, self._computing_seconds = 0, 0.0

    def resume(self) -> bool:
        """Continue from the newest checkpoint that is whole, if there is one."""
        if not self._restore():
            return False
        state = self.state
        self.clock.before, self.limit.reserve = state.elapsed, state.reserve
        if self.extension and state.finished and self.extension.step == state.position.step:
            self.limit.reopen(state)
        self.save_kept()  # a kill may have come between the checkpoint and the model folder
        return True

    def _restore(self) -> bool:
        """Restore the checkpoint that the leading process finds, if it finds one."""
        found: list[RunState | None] = []

        def look() -> None:
            recover_checkpoints(self.checkpoints)
            found.append(restore_newest(self.checkpoints, self.metrics, self.learner.restore, self.observer.message))

        self.world.by_leader("look for a checkpoint", look)
        state = found[0] if found else None
        step = self.world.first(state.position.step if state else None)
        if step is not None:
            self.state = state or self.learner.restore(checkpoint_path(self.checkpoints, int(step)))
        return step is not None

    def run(self) -> bool:
        """Train to the end; False if it was asked to stop before that."""
        try:
            return self._run()
        finally:
            self.saver.settle()

    def _run(self) -> bool:
        self.model.train()
        if self.state.position.step == 0:
            self.state.began = self.clock.elapsed()
        with ThreadPoolExecutor(1) as ahead:
            # At least one step: preparing the data, or starting an extended run again, may have used up the budget.
            begins = (0, self.extension.step if self.extension else 0)
            self._ended = self.state.position.step not in begins and self._over()
            if self._ended and not (self.state.finished or self.state.is_validated):
                self._validate_and_save()  # the time ran out between two starts
            while not self.state.finished and not self._ended:
                self._epoch(ahead)
                if self._stopping and not self._ended:
                    self.save()
                    return False
        if not self.state.finished:
            self._finish()
        return True

    def _over(self) -> bool:
        return bool(self.world.first(self.limit.over(self.state)))

    def _epoch(self, ahead: ThreadPoolExecutor) -> None:
        """Take the steps that are left of the epoch, each batch prepared while the one before it computes."""
        position = self.state.position
        batches = self.task.epoch_batches(position.epoch)
        starts = range(position.batch, len(batches), self.batches_per_step)

        def prepare(start: int) -> Future[Parts[AnyBatch]]:
            return ahead.submit(self._collate, batches[start : start + self.batches_per_step], self.state.split)

        if not starts:
            raise UserError(f"the checkpoints in {self.checkpoints} belong to other data: start in another folder")
        coming, split = prepare(starts[0]), self.state.split
        for start in starts:
            if split != self.state.split:  # memory ran out after this one was prepared
                coming, split = prepare(start), self.state.split
            current = coming.result()
            before = self.world.first(self.limit.progress(self.state, len(batches)))
            position.batch = start + self.batches_per_step
            if position.batch < len(batches):
                coming = prepare(position.batch)
            self._step(current, before)
            if position.batch >= len(batches):
                position.epoch, position.batch = position.epoch + 1, 0
            self._ended = self._after_step(self.world.first(self.limit.progress(self.state, len(batches))))
            self._stopping = self.world.any(self.stop_requested() or self.saver.failed)
            if self._stopping or self._ended:
                return

    def _collate(self, batches: Sequence[Indices], split: int) -> Parts[AnyBatch]:
        return cut_parts(batches, self.workers * split, self.task.collate, self.learner)

    def _step(self, parts: Parts[AnyBatch], progress: float | None) -> None:
        """One optimizer step over some batches."""
        started = time.monotonic()
        position = self.state.position
        position.step += 1
        rate = learning_rate(self.config.schedule, self.task.width, position.step, progress, self.state.extended_at)
        self.world.at_step(position.step)
        targets, real, tokens = self._sums(parts)
        seed = self.config.seed * 1_000_003 + position.step
        loss = self.learner.compute(parts, targets, seed, self._note_split)
        norm = self.learner.clip()
        self._check(loss, norm)
        self.learner.update(position.step, rate)
        seconds = time.monotonic() - started
        self._computed_tokens += tokens
        self._computing_seconds += seconds
        row = {
            "step": position.step,
            "epoch": position.epoch,
            "loss": loss,
            "learning_rate": rate,
            "gradient_norm": norm,
            "target_tokens": targets,
            "unit": self.task.unit,
            "padding": 1 - real / tokens,
            "seconds": seconds,
            "elapsed": self.clock.elapsed(),
        }
        self.metrics.write("train", row)
        self.observer.step(row, progress)

    def _sums(self, parts: Parts[AnyBatch]) -> list[int]:
        copies = self.world.size // self.learner.places  # processes that split layers have the same parts
        return [each // copies for each in self.world.sums(parts.sums)]

    def _note_split(self) -> None:
        self.state.split *= 4
        self.observer.message("a batch did not fit into memory: continuing with parts a quarter of the size")

    def _check(self, loss: float, norm: float) -> None:
        what, step = divergence(loss, norm, self.task.largest_loss), self.state.position.step
        if what:
            self.metrics.write("failure", {"step": step, "reason": what})
            self.saver.wait()
            drop_checkpoint(self.checkpoints, step - 1)  # it holds the weights that gave this loss
            raise divergence_error(step, what, self.checkpoints)

    def _after_step(self, progress: float | None) -> bool:
        """Validate and save, if that is due; return whether the run is at its end, which comes after a validation."""
        per_token = self._computing_seconds / self._computed_tokens
        self.limit.expect_validation(self.state, per_token * self.task.validation_tokens)
        due = self.world.first(self.limit.pass_validation(self.state, progress))
        if due or self._over():
            self._validate_and_save()
            return self._over()
        if self.world.first(self.saver.due()):
            self.start_saving()
        return False

    def _validate_and_save(self) -> None:
        """Measure the weights as they are now, and save the run, and them if they are the best so far."""
        self._validate()
        self.state.validation_steps.append(self.state.position.step)
        # The checkpoint first, because it records the best weights: a run that continues from an older one could
        # take worse weights for the best, and overwrite them.
        self.start_saving()
        self.save_kept()

    def _validate(self, averaged: bool = True) -> None:
        """Measure the weights as they are now, and note whether they are the best so far."""
        with self.learner.measured(averaged) as sharing:
            if sharing is None:
                self.world.by_leader("validate", self._measure_and_note)
            else:
                with self.world.naming_failures():
                    self._measure_and_note(sharing)

    def _measure_and_note(self, sharing: Sharing | None = None) -> None:
        started = time.monotonic()
        self.model.eval()
        # In a worker, which can reuse the memory that training has released.
        result, entropy = self.learner.pool.submit(self._measure, sharing).result()
        self.model.train()
        if not self.world.leads:
            return
        self.state.note_if_best(result.rank, {"loss": result.loss, **result.scores})
        took = time.monotonic() - started
        self.limit.note_validation(self.state, took)
        row = validation_row(self.state.position.step, result, entropy, took, self.clock.elapsed())
        self.metrics.write("validation", row)
        self.observer.validation(row, result.examples)

    def _measure(self, sharing: Sharing | None) -> tuple[Validation, dict[str, list[float]]]:
        with side_by_side_on(self.workers), shared_work(sharing):
            found = self.task.validate()
            return found, by_first(lambda: attention_entropy(self.model, self.task.read_examples))

    def save_kept(self, averaged: bool = True) -> None:
        """Put the best weights, which the model has now, into the model folder, unless they are already there."""
        if not self.world.first(self.state.unsaved_scores is not None):
            return

        self.saver.wait()
        weights = self.learner.weights(averaged)

        def keep() -> None:
            assert self.state.unsaved_scores is not None
            try:
                self.save_model(self.state.unsaved_scores, weights)
            finally:
                weights.drain()
            self.state.unsaved_scores = None

        if not self.world.leads:
            weights.drain()
        self.world.by_leader("write the model", keep)

    def save(self) -> None:
        """Write a checkpoint, and return when it is complete."""
        self._note_progress()
        self.saver.save(self.learner, self.state, set(self._steps_to_average()))

    def start_saving(self) -> None:
        """The same from a copy, while training goes on."""
        self._note_progress()
        self.saver.start(self.learner, self.state, set(self._steps_to_average()))

    def _note_progress(self) -> None:
        self.state.elapsed, self.state.metrics = self.clock.elapsed(), self.metrics.mark()

    def _steps_to_average(self) -> list[int]:
        count = self.config.average_checkpoints
        return self.state.validation_steps[-count:] if count else []

    def _finish(self) -> None:
        """Measure the mean of the last checkpoints, where the recipe asks for it."""
        self.saver.wait()
        whole = self.saver.whole(self._steps_to_average(), self.observer.message)
        if len(whole) > 1:
            self.observer.message(f"the mean of the last {len(whole)} checkpoints:")
            with self.learner.mean_of(whole):
                self._validate(averaged=False)
                self.save_kept(averaged=False)
        self.state.finished = True
        self.save()
