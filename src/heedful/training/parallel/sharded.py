"""A model that is spread over processes, as it is trained, saved and restored."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.machine.memory import out_of_memory
from heedful.tasks.task import AnyBatch, Task
from heedful.training.config import TrainingConfig
from heedful.training.gradients import start_worker
from heedful.training.optimizer import make_optimizer
from heedful.training.parallel.apply import make_mesh, parallelize
from heedful.training.parallel.drawing import Drawing
from heedful.training.parallel.layout import data_size
from heedful.training.parallel.lending import Lender
from heedful.training.parallel.pieces import Share, fill_from_whole, shares_of, whole_tensors
from heedful.training.parallel.sharded_gradients import ShardedGradients
from heedful.training.parallel.spread_checkpoint import writing_group
from heedful.training.parallel.spread_model import SpreadModel
from heedful.training.parallel.tensor import local_tensor
from heedful.training.parallel.world import World
from heedful.training.parts import Parts
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


class Sharded(SpreadModel, Generic[AnyBatch]):
    """This process's shares of the parameters, with their gradients, optimizer and average; others have the rest."""

    in_step = True

    def __init__(
        self,
        model: nn.Module,
        task: Task[AnyBatch],
        config: TrainingConfig,
        world: World,
        drawing: Drawing | None = None,
    ) -> None:
        self.config, self.world = config, world
        machine = config.machine
        self.mesh = make_mesh(config.parallel, str(machine.device), config.parallel.timeout_seconds)
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
        self.shapes = dict(self.model.named_parameters())
        self.lender = Lender(model, world)
        self.gradients: ShardedGradients[AnyBatch] = ShardedGradients(step, self.mesh)
        self.optimizer = make_optimizer(self.model, config.optimizer)
        self.average = ShardedAverage(self.model, config.ema_decay) if config.ema_decay else None
        assert machine.workers is not None and machine.threads is not None
        threads = machine.threads * max(1, machine.workers // self.places)  # one part at a time uses them all
        self.pool = ThreadPoolExecutor(1, initializer=start_worker, initargs=(threads,))
        self.writers = writing_group(config.parallel.timeout_seconds)

    def _fill(self, drawing: Drawing, unspread: dict[str, nn.Parameter]) -> None:
        """Give the shares their first values, parameter by parameter."""
        for name, parameter in self.model.named_parameters():
            whole = {name: drawing.value(unspread.pop(name))}
            fill_from_whole({name: parameter}, whole, self.placements, self.mesh)

    def compute(self, parts: Parts[AnyBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token, of this many, in the parameters; return that mean."""
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

    def whole(self, tensors: Mapping[str, Tensor], names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
        """Some whole tensors, one at a time, in all processes together."""
        return whole_tensors({name: tensors[name] for name in names}, self.placements, self.mesh)

    def shares(self, tensors: Mapping[str, Tensor]) -> dict[str, Share]:
        """What this process holds of the tensors."""
        return shares_of(tensors, self.placements, self.mesh)
