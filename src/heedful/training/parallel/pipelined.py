"""A model whose layers lie in several processes, one stage after the other, as it is trained, saved and restored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.machine.memory import out_of_memory
from heedful.models.decoder_only import DecoderOnly
from heedful.models.weights_file import load_parameters
from heedful.tasks.language_modeling.task import LanguageBatch
from heedful.tasks.task import Task
from heedful.training.averaging import MovingAverage, mean_of_files
from heedful.training.checkpoint import save_checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.gradients import start_worker
from heedful.training.optimizer import make_optimizer, optimizer_tensors, restore_optimizer
from heedful.training.parallel.blocks import prepare_blocks
from heedful.training.parallel.pipeline import (
    Grid,
    PipelineGradients,
    moment_templates,
    templates,
    whole_of_stages,
)
from heedful.training.parallel.stages import Stage, keep_stage
from heedful.training.parallel.world import World
from heedful.training.parts import Parts
from heedful.training.recovery import checkpoint_tensors
from heedful.training.run_state import RunState


class Pipelined:
    """One stage of a decoder-only model, with its gradients, optimizer and average; other processes have the others.

    The task's own model stays whole in the leading process, and is given the weights when they are measured.
    """

    in_step = False

    def __init__(self, model: nn.Module, task: Task[LanguageBatch], config: TrainingConfig, world: World) -> None:
        assert isinstance(model, DecoderOnly)
        self.whole, self.config, self.world = model, config, world
        parallel, machine = config.parallel, config.machine
        self.places, stages = parallel.replicate or 1, parallel.pipeline or 1
        self.grid = Grid(self.places, stages, parallel.timeout_seconds)
        self.place = self.grid.copy
        self.shapes = templates(model)
        self.model = copy.deepcopy(model)
        self.owners = keep_stage(self.model, self.grid.stage, stages)
        prepare_blocks(self.model, parallel)
        self.stage = Stage(self.model, task.loss, self.grid.stage, stages, machine.precision == "bf16")
        if not world.leads:
            for parameter in model.parameters():
                parameter.data = parameter.data.new_empty(0)
        self.gradients = PipelineGradients(self.stage, self.owners, self.grid)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.average = MovingAverage(self.model, config.ema_decay) if config.ema_decay else None
        assert machine.workers is not None and machine.threads is not None
        threads = machine.threads * max(1, machine.workers // world.size)  # all stages compute at the same time
        self.pool = ThreadPoolExecutor(1, initializer=start_worker, initargs=(threads,))
        self._holds_mean = False

    def compute(self, parts: Parts[LanguageBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token, of so many, in the parameters; give that mean."""
        own = list(zip(parts.numbers, parts.batches, strict=True))
        self.stage.train()
        try:
            with self.world.naming_failures():
                return float(self.pool.submit(self.gradients.compute, own, targets, seed).result())
        except (RuntimeError, MemoryError) as error:
            cause = error.__cause__  # torch says where it was, and no more
            if not any(isinstance(each, Exception) and out_of_memory(each) for each in (error, cause)):
                raise
            raise UserError(
                "a batch did not fit into memory, which a model in stages cannot mend by itself: set a smaller "
                "training.batches.tokens_per_batch in another folder"
            ) from None

    def clip(self) -> float:
        """Scale the gradients down, if so set; give the norm they had."""
        with self.world.naming_failures():
            return float(self.gradients.clip(self.config.optimizer.clip_norm))

    def update(self, step: int, rate: float) -> None:
        """Take the step."""
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.optimizer.step()
        if self.average:
            self.average.update(step)

    @contextmanager
    def measured(self, averaged: bool = True) -> Iterator[None]:
        """The task's model, in the leading process, has the weights that are measured and kept."""
        if not self._holds_mean:
            kept = self.average.tensors if self.average and averaged else dict(self.model.named_parameters())
            own = dict(self.whole.named_parameters())
            with torch.no_grad():
                for name, whole in self._whole(kept, self.shapes):
                    if self.world.leads:
                        own[name].copy_(whole)
        yield

    def _whole(self, tensors: Mapping[str, Tensor], shapes: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
        with self.world.naming_failures():
            yield from whole_of_stages(tensors, shapes, self.owners, self.grid)

    @contextmanager
    def mean_of(self, checkpoints: list[Path]) -> Iterator[None]:
        """The task's model has the mean of the weights of checkpoints inside the block."""
        if self.world.leads:
            load_parameters(self.whole, mean_of_files([path / "model.safetensors" for path in checkpoints]))
        self._holds_mean = True
        yield
        self._holds_mean = False

    def save(self, folder: Path, state: RunState) -> None:
        """Write a checkpoint."""
        tensors = self._gathered()
        self.world.by_leader("save", lambda: save_checkpoint(folder, state.position.step, tensors, state.to_dict()))

    def _gathered(self) -> dict[str, dict[str, Tensor]]:
        """All tensors of a checkpoint by file, in the leading process."""
        moments = moment_templates(self.shapes, self.optimizer)
        groups: dict[str, tuple[Mapping[str, Tensor], Mapping[str, Tensor]]] = {
            "model": (dict(self.model.named_parameters()), self.shapes),
            "optimizer": (optimizer_tensors(self.model, self.optimizer), moments),
        }
        if self.average:
            groups["average"] = (self.average.tensors, self.shapes)
        found: dict[str, dict[str, Tensor]] = {group: {} for group in groups}
        for group, (tensors, shapes) in groups.items():
            for name, whole in self._whole(tensors, shapes):
                if self.world.leads:
                    found[group][name] = whole
        return found

    def restore(self, path: Path) -> RunState:
        """Take over a checkpoint, and give its state; a DamagedCheckpointError if it cannot be used."""
        tensors, state = checkpoint_tensors(path, self.shapes, self.average is not None)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors["model"][name])
        restore_optimizer(self.model, self.optimizer, tensors["optimizer"])
        if self.average:
            self.average.restore(tensors["average"])
        return state
