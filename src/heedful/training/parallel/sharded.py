"""A model that is spread over processes, as it is trained, saved and restored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Generic

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.machine.memory import out_of_memory
from heedful.models.weights_file import load_parameters
from heedful.tasks.task import AnyBatch, Task
from heedful.training.averaging import mean_of_files
from heedful.training.checkpoint import save_checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.gradients import start_worker
from heedful.training.optimizer import make_optimizer, optimizer_tensors
from heedful.training.parallel.apply import make_mesh, parallelize
from heedful.training.parallel.layout import data_size
from heedful.training.parallel.pieces import fill_from_whole, whole_tensors
from heedful.training.parallel.sharded_gradients import ShardedGradients
from heedful.training.parallel.tensor import local_tensor
from heedful.training.parallel.world import World
from heedful.training.parts import Parts
from heedful.training.recovery import checkpoint_tensors
from heedful.training.run_state import RunState
from heedful.training.step import TrainingStep


class ShardedAverage:
    """A moving average of this process's shares of the parameters, as `MovingAverage` is of whole ones."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = dict(model.named_parameters())
        self.tensors = {name: each.detach().clone() for name, each in self.parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the parameters after a step."""
        share = 1.0 - min(self.decay, (1 + step) / (10 + step))
        shares = [local_tensor(each) for each in self.tensors.values()]
        torch._foreach_lerp_(shares, [local_tensor(each.detach()) for each in self.parameters.values()], share)


class Sharded(Generic[AnyBatch]):
    """Shares of the parameters, with their gradients, optimizer and average, that many processes have together.

    The task's own model stays whole, and is given the weights when they are measured; only the leading process needs
    memory for it.
    """

    in_step = True

    def __init__(self, model: nn.Module, task: Task[AnyBatch], config: TrainingConfig, world: World) -> None:
        self.whole, self.config, self.world = model, config, world
        machine = config.machine
        self.mesh = make_mesh(config.parallel, str(machine.device))
        data = self.mesh["replicate", "shard"]
        self.places = data_size(config.parallel)
        self.place = data.get_local_rank(0) * self.mesh["shard"].size() + data.get_local_rank(1)
        self.model = copy.deepcopy(model)
        step: TrainingStep[AnyBatch] = TrainingStep(self.model, task.loss)
        bf16 = machine.precision == "bf16"
        self.placements = parallelize(step, self.model, self.mesh, config.parallel, bf16)
        self.step = step
        if not world.leads:
            for parameter in model.parameters():
                parameter.data = parameter.data.new_empty(0)
        self.gradients: ShardedGradients[AnyBatch] = ShardedGradients(step, self.mesh)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.average = ShardedAverage(self.model, config.ema_decay) if config.ema_decay else None
        assert machine.workers is not None and machine.threads is not None
        threads = machine.threads * max(1, machine.workers // self.places)  # one part at a time has them all
        self.pool = ThreadPoolExecutor(1, initializer=start_worker, initargs=(threads,))
        self._holds_mean = False

    def compute(self, parts: Parts[AnyBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token, of so many, in the parameters; give that mean."""
        own = [(number, batch, True) for number, batch in zip(parts.numbers, parts.batches, strict=True)]
        if parts.filler is not None:
            own.append((0, parts.filler, False))
        self.step.train()
        try:
            with self.world.naming_failures():
                return float(self.pool.submit(self.gradients.compute, own, targets, seed).result())
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            raise UserError(
                "a batch did not fit into memory, which a model that is spread over processes cannot mend by itself: "
                "set a smaller training.batches.tokens_per_batch in another folder"
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
            self._give_whole(kept)
        yield

    @torch.no_grad()
    def _give_whole(self, tensors: Mapping[str, Tensor]) -> None:
        own = dict(self.whole.named_parameters())
        with self.world.naming_failures():
            for name, whole in whole_tensors(tensors, self.placements, self.mesh):
                if self.world.leads:
                    own[name].copy_(whole)

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
        groups: dict[str, Mapping[str, Tensor]] = {"model": dict(self.model.named_parameters())}
        groups["optimizer"] = optimizer_tensors(self.model, self.optimizer)
        if self.average:
            groups["average"] = self.average.tensors
        found: dict[str, dict[str, Tensor]] = {group: {} for group in groups}
        with self.world.naming_failures():
            for group, tensors in groups.items():
                for name, whole in whole_tensors(tensors, self.placements, self.mesh):
                    if self.world.leads:
                        found[group][name] = whole
        self.world.by_leader("save", lambda: save_checkpoint(folder, state.position.step, found, state.to_dict()))

    def restore(self, path: Path) -> RunState:
        """Take over a checkpoint, and give its state; a DamagedCheckpointError if it cannot be used."""
        tensors, state = checkpoint_tensors(path, dict(self.model.named_parameters()), self.average is not None)
        parameters = dict(self.model.named_parameters())
        self._fill(parameters, tensors["model"])
        for name, parameter in parameters.items():
            if f"{name}/step" in tensors["optimizer"]:
                moments = {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
                for key, moment in moments.items():
                    self._fill({name: moment}, {name: tensors["optimizer"][f"{name}/{key}"]})
                count = tensors["optimizer"][f"{name}/step"].clone()
                self.optimizer.state[parameter] = {"step": count, **moments}
        if self.average:
            self._fill(self.average.tensors, tensors["average"])
        return state

    def _fill(self, tensors: Mapping[str, Tensor], whole: Mapping[str, Tensor]) -> None:
        fill_from_whole(tensors, whole, self.placements, self.mesh)
