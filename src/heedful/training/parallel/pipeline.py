"""The gradients of a step of a model in stages: GPipe (Huang et al., 2019), with torch's schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from heedful.tasks.language_modeling.task import LanguageBatch
from heedful.training.parallel.stages import Owners, Stage, StageWork


class Grid:
    """The processes of a run as copies of a model, each in stages; those next to each other are stages of one copy."""

    def __init__(self, copies: int, stages: int, timeout_seconds: float) -> None:
        self.copies, self.stages = copies, stages
        self.copy, self.stage = divmod(dist.get_rank(), stages)
        self._timeout = timedelta(seconds=timeout_seconds)
        self._ranks = torch.arange(copies * stages).view(copies, stages)
        # All processes make all groups, in the same order, as torch requires.
        self.pipeline = self.group_of_stages(tuple(range(stages)))
        self.replicas = self._own_group(self._ranks.T.tolist())

    def group_of_stages(self, stages: Sequence[int]) -> dist.ProcessGroup | None:
        """The process group of some stages of this copy, if this process is one of them."""
        return self._own_group(self._ranks[:, list(stages)].tolist())

    def _own_group(self, rows: list[list[int]]) -> dist.ProcessGroup | None:
        own = None
        for ranks in rows:
            group = dist.new_group(ranks, timeout=self._timeout)
            if dist.get_rank() in ranks:
                own = group
        return own

    def rank_of(self, stage: int) -> int:
        """The process that has a stage of this copy."""
        return int(self._ranks[self.copy, stage])


class PipelineGradients:
    """Computes the parts of a step in stages: all of them forward, then all of them back."""

    def __init__(self, stage: Stage, owners: Owners, grid: Grid) -> None:
        self.stage, self.owners, self.grid = stage, owners, grid
        self.parameters = {name: each for name, each in stage.model.named_parameters() if each.requires_grad}
        shared = sorted({each for each in owners.values() if len(each) > 1})
        self._groups = {stages: grid.group_of_stages(stages) for stages in shared}
        self._schedule: ScheduleGPipe | None = None
        self._rows = self._parts = 0

    def compute(self, parts: Sequence[tuple[int, LanguageBatch]], targets: int, seed: int) -> Tensor:
        """Leave in the parameters the gradient of the mean loss, over `targets` in all copies; return that mean."""
        for parameter in self.parameters.values():
            parameter.grad = None
        self.stage.total = 0.0
        if parts:
            # One shape for the whole run: a later batch is larger only if the first was the last of an epoch.
            rows = max(self._rows, *(len(batch.ids_BT) for _, batch in parts))
            self.stage.work = StageWork(parts, targets, seed, rows)
            turns = torch.arange(len(parts))
            self._schedule_of(len(parts), rows, parts[0][1].ids_BT).step(turn=turns, target=turns, losses=[])
        self._sum_gradients()
        total = torch.tensor(self.stage.total, dtype=torch.float64)
        dist.all_reduce(total)
        return total / targets

    def _schedule_of(self, parts: int, rows: int, ids_BT: Tensor) -> ScheduleGPipe:
        """The schedule for this many parts; another only for the last steps of an epoch, which have fewer."""
        if self._schedule is None or (parts, rows) != (self._parts, self._rows):
            self._parts, self._rows = parts, rows
            grid, handed = self.grid, tuple(self.stage.shapes(ids_BT.shape[1]))
            stage = PipelineStage(
                self.stage,
                grid.stage,
                grid.stages,
                ids_BT.device,
                input_args=handed if grid.stage else (),
                output_args=torch.empty(1, device="meta") if self.stage.is_last else handed,
                group=grid.pipeline,
            )
            self._schedule = ScheduleGPipe(stage, parts, lambda loss, turn: loss.sum(), scale_grads=False)
        return self._schedule

    def _sum_gradients(self) -> None:
        """Sum the gradients of what several stages use over these, and then all gradients over the copies."""
        for name, parameter in self.parameters.items():
            gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            group = self._groups.get(self.owners[name])
            if group is not None:
                dist.all_reduce(gradient, group=group)
            if self.grid.copies > 1:
                dist.all_reduce(gradient, group=self.grid.replicas)
            parameter.grad = gradient

    @torch.no_grad()
    def clip(self, largest_norm: float) -> Tensor:
        """Scale the gradients down to a norm of `largest_norm`, unless that is 0; return the norm they had."""
        squares = torch.zeros((), dtype=torch.float64)
        for name, parameter in self.parameters.items():
            if self.owners[name][0] == self.grid.stage and parameter.grad is not None:  # once, if several use it
                squares += parameter.grad.square().sum(dtype=torch.float64).cpu()
        dist.all_reduce(squares, group=self.grid.pipeline)
        norm = squares.sqrt()
        if largest_norm:
            scale = (largest_norm / (norm + 1e-6)).clamp(max=1.0)
            for parameter in self.parameters.values():
                if parameter.grad is not None:
                    parameter.grad.mul_(scale.to(parameter.grad))
        return norm


def whole_of_stages(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, Tensor], owners: Owners, grid: Grid
) -> Iterator[tuple[str, Tensor]]:
    """Each of the tensors whose names and shapes are given, in all processes, which must ask for them together.

    `tensors` are those that this stage has; the others are sent by the first stage that has them, one at a time.
    """
    for name, shape in shapes.items():
        owner = owners[name.partition("/")[0]][0]  # moments are named after their parameter
        own = tensors[name].detach() if owner == grid.stage else None
        device = next(iter(tensors.values())).device
        whole = torch.empty(shape.shape, dtype=shape.dtype, device=device) if own is None else own.contiguous()
        dist.broadcast(whole, grid.rank_of(owner), group=grid.pipeline)
        yield name, whole


def templates(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters of a whole model by name, as shapes without memory."""
    return {
        name: nn.Parameter(torch.empty_like(each, device="meta"), requires_grad=each.requires_grad)
        for name, each in model.named_parameters()
    }
