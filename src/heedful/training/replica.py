"""A whole model in this process, as it is trained, saved and restored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol

from torch import Tensor, nn

from heedful.machine.shared_work import Sharing
from heedful.models.weights_file import load_parameters, parameter_tensors
from heedful.tasks.task import AnyBatch, Task
from heedful.training.averaging import MovingAverage, mean_of_checkpoints
from heedful.training.checkpoint import save_checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.gradients import ParallelGradients
from heedful.training.optimizer import clip_gradients, make_optimizer, optimizer_tensors
from heedful.training.parallel.blocks import prepare_blocks
from heedful.training.parallel.drawing import Drawing
from heedful.training.parallel.layout import data_size, is_sharded
from heedful.training.parallel.world import World
from heedful.training.parts import Parts
from heedful.training.recovery import restore_checkpoint
from heedful.training.run_state import RunState
from heedful.training.step import TrainingStep
from heedful.weights_writer import WeightStream, stream_of


class Learner(Protocol[AnyBatch]):
    """What the loop needs from a model that learns, wherever that lies."""

    # The number of this process, or of the group that splits layers with it, among the `places` that take parts.
    place: int
    places: int
    # Whether all processes must compute equally many parts.
    in_step: bool
    # Threads that have the memory and the settings of training.
    pool: ThreadPoolExecutor

    def compute(self, parts: Parts[AnyBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token (of `targets`) in the parameters; return that mean."""

    def clip(self) -> float:
        """Scale the gradients down, if so set; return the norm they had."""

    def update(self, step: int, rate: float) -> None:
        """Take the step."""

    def measured(self, averaged: bool = True) -> AbstractContextManager[Sharing | None]:
        """Inside the block, the task's model has the weights to measure; all processes enter it together.

        If the weights are spread over the processes, the block's `Sharing` says how these compute together.
        """

    def weights(self, averaged: bool = True) -> WeightStream:
        """The weights that are kept; all processes must take all of them, together."""

    def checkpoint(self, folder: Path, state: RunState, *, copied: bool) -> Callable[[], object]:
        """A function that writes a checkpoint of the model as it is now, to be called in all processes, by any thread.

        With `copied` it has a copy of all that it writes, so that training can go on in the meantime.
        """

    def restore(self, path: Path) -> RunState:
        """Restore a checkpoint, and return its state; a DamagedCheckpointError if it cannot be used."""

    def mean_of(self, checkpoints: list[Path]) -> AbstractContextManager[None]:
        """Inside the block, the model has the mean of the weights of these checkpoints."""


class Replica(Generic[AnyBatch]):
    """The model with its gradients, its optimizer and its moving average; other processes may have the same."""

    in_step = False

    def __init__(self, model: nn.Module, task: Task[AnyBatch], config: TrainingConfig, world: World) -> None:
        self.model, self.config, self.world = model, config, world
        machine = config.machine
        assert machine.workers is not None and machine.threads is not None
        self.place, self.places = world.rank, data_size(config.parallel)
        prepare_blocks(model, config.parallel)
        step = TrainingStep(model, task.loss, bf16=machine.precision == "bf16")
        workers = max(1, machine.workers // self.places)
        self.gradients = ParallelGradients(step, workers, machine.threads, world)
        self.pool = self.gradients.pool
        self.optimizer = make_optimizer(model, config.optimizer)
        self.average = MovingAverage(model, config.ema_decay) if config.ema_decay else None

    def compute(self, parts: Parts[AnyBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token (of `targets`) in the parameters; return that mean."""
        return self.gradients.compute(parts, targets, seed, on_split)

    def clip(self) -> float:
        """Scale the gradients down, if so set; return the norm they had."""
        return float(clip_gradients(self.model, self.config.optimizer.clip_norm))

    def update(self, step: int, rate: float) -> None:
        """Take the step."""
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.optimizer.step()
        if self.average:
            self.average.update(step)

    def measured(self, averaged: bool = True) -> AbstractContextManager[None]:
        """Inside the block, the model has the weights to measure."""
        return self.average.in_place() if self.average and averaged else nullcontext()

    def weights(self, averaged: bool = True) -> WeightStream:
        """The weights that are kept."""
        return stream_of(self.average.tensors if self.average and averaged else parameter_tensors(self.model))

    def checkpoint(self, folder: Path, state: RunState, *, copied: bool) -> Callable[[], object]:
        """A function that writes a checkpoint of the model as it is now: the leading process writes all of it."""
        if not self.world.leads:
            return lambda: None
        tensors = {"model": parameter_tensors(self.model)}
        tensors["optimizer"] = optimizer_tensors(self.model, self.optimizer)
        if self.average:
            tensors["average"] = self.average.tensors
        if copied:
            tensors = {
                group: {name: in_memory(each) for name, each in named.items()} for group, named in tensors.items()
            }
        return partial(save_checkpoint, folder, state.position.step, tensors, state.to_dict())

    def restore(self, path: Path) -> RunState:
        """Restore a checkpoint, and return its state; a DamagedCheckpointError if it cannot be used."""
        return restore_checkpoint(path, self.model, self.optimizer, self.average)

    @contextmanager
    def mean_of(self, checkpoints: list[Path]) -> Iterator[None]:
        """Inside the block, the model has the mean of the weights of these checkpoints."""
        last = {name: tensor.clone() for name, tensor in parameter_tensors(self.model).items()}
        load_parameters(self.model, mean_of_checkpoints(checkpoints))
        try:
            yield
        finally:
            load_parameters(self.model, last)


def in_memory(tensor: Tensor) -> Tensor:
    """A copy of a tensor as it is now, in main memory."""
    return tensor.detach().to("cpu", copy=True)


def make_learner(
    model: nn.Module, task: Task[Any], config: TrainingConfig, world: World, drawing: Drawing | None = None
) -> Learner[Any]:
    """The model as its layout asks: whole in every process, or spread over them.

    A spread model keeps the values that it has, or gets those of a drawing.
    """
    if not is_sharded(config.parallel):
        return Replica(model, task, config, world)
    if (config.parallel.pipeline or 1) > 1:
        from heedful.training.parallel.pipelined import Pipelined

        return Pipelined(model, task, config, world, drawing)
    from heedful.training.parallel.sharded import Sharded

    return Sharded(model, task, config, world, drawing)
