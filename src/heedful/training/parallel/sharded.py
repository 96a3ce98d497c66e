"""A model that is spread over processes, as it is trained, saved and restored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Generic

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.machine.memory import out_of_memory
from heedful.models.weights_file import load_parameters
from heedful.tasks.task import AnyBatch, Task
from heedful.training.averaging import mean_of_checkpoints
from heedful.training.checkpoint import check_checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.gradients import start_worker
from heedful.training.optimizer import make_optimizer, optimizer_tensors
from heedful.training.parallel.apply import make_mesh, parallelize
from heedful.training.parallel.drawing import Drawing
from heedful.training.parallel.layout import data_size
from heedful.training.parallel.pieces import Share, fill_from_whole, shares_of, whole_tensors
from heedful.training.parallel.sharded_gradients import ShardedGradients
from heedful.training.parallel.spread_checkpoint import read_shares, save_shares, writing_group
from heedful.training.parallel.tensor import local_tensor
from heedful.training.parallel.world import World
from heedful.training.parts import Parts
from heedful.training.recovery import check_contents
from heedful.training.replica import in_memory
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

    def __init__(
        self,
        model: nn.Module,
        task: Task[AnyBatch],
        config: TrainingConfig,
        world: World,
        drawing: Drawing | None = None,
    ) -> None:
        self.whole, self.config, self.world = model, config, world
        machine = config.machine
        self.mesh = make_mesh(config.parallel, str(machine.device))
        data = self.mesh["replicate", "shard"]
        self.places = data_size(config.parallel)
        self.place = data.get_local_rank(0) * self.mesh["shard"].size() + data.get_local_rank(1)
        self.model = drawing.model().to(machine.device) if drawing else copy.deepcopy(model)
        unspread = dict(self.model.named_parameters()) if drawing else {}
        step: TrainingStep[AnyBatch] = TrainingStep(self.model, task.loss)
        bf16 = machine.precision == "bf16"
        self.placements = parallelize(step, self.model, self.mesh, config.parallel, bf16)
        self.step = step
        if drawing:
            self._fill(drawing, unspread)
        if not world.leads:
            for parameter in model.parameters():
                parameter.data = parameter.data.new_empty(0)
        self.gradients: ShardedGradients[AnyBatch] = ShardedGradients(step, self.mesh)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.average = ShardedAverage(self.model, config.ema_decay) if config.ema_decay else None
        assert machine.workers is not None and machine.threads is not None
        threads = machine.threads * max(1, machine.workers // self.places)  # one part at a time has them all
        self.pool = ThreadPoolExecutor(1, initializer=start_worker, initargs=(threads,))
        self.writers = writing_group(config.parallel.timeout_seconds)
        self._holds_mean = False

    def _fill(self, drawing: Drawing, unspread: dict[str, nn.Parameter]) -> None:
        """Give the shares their first values, parameter by parameter."""
        for name, parameter in self.model.named_parameters():
            whole = {name: drawing.value(unspread.pop(name))}
            fill_from_whole({name: parameter}, whole, self.placements, self.mesh)

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
            load_parameters(self.whole, mean_of_checkpoints(checkpoints))
        self._holds_mean = True
        yield
        self._holds_mean = False

    def checkpoint(self, folder: Path, state: RunState, *, copied: bool) -> Callable[[], object]:
        """What writes a checkpoint of the model as it is now: each process has its share of it."""
        shares = self._shares()
        if copied:
            shares = {name: replace(share, local=in_memory(share.local)) for name, share in shares.items()}
        step, content = state.position.step, state.to_dict()

        def write() -> None:
            with self.world.naming_failures():
                save_shares(folder, step, shares, content, self.writers)

        return write

    def _shares(self) -> dict[str, Share]:
        """What this process has of all that a checkpoint holds, by group and name."""
        groups: dict[str, Mapping[str, Tensor]] = {"model": dict(self.model.named_parameters())}
        groups["optimizer"] = optimizer_tensors(self.model, self.optimizer)
        if self.average:
            groups["average"] = self.average.tensors
        found = {group: shares_of(tensors, self.placements, self.mesh) for group, tensors in groups.items()}
        return {f"{group}/{name}": share for group, shares in found.items() for name, share in shares.items()}

    def restore(self, path: Path) -> RunState:
        """Take over a checkpoint, and give its state; a DamagedCheckpointError if it cannot be used."""
        # The leading process comes first, and looks at the files of all.
        stored, content = check_checkpoint(path, checksums=self.world.leads)
        parameters = dict(self.model.named_parameters())
        shapes = {name: each.shape for name, each in stored.items()}
        state = check_contents(path, content, shapes, parameters, self.average is not None)
        for name, parameter in parameters.items():
            if f"optimizer/{name}/step" in stored:
                moments = {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
                self.optimizer.state[parameter] = {"step": torch.zeros(()), **moments}
        with torch.no_grad():
            read_shares(path, stored, self._shares())
        return state
