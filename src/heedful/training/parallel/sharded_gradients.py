"""The gradients of a step of a model that is spread over processes by `parallelize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from heedful.layers.dropout import seeded_dropout
from heedful.tasks.task import AnyBatch
from heedful.training.gradients import part_seed
from heedful.training.parallel.tensor import local_tensor


class ShardedGradients(Generic[AnyBatch]):
    """Computes this process's parts of a step one after the other; torch sums the gradients over the processes."""

    def __init__(self, step: nn.Module, mesh: DeviceMesh) -> None:
        self.step, self.mesh = step, mesh
        self.parameters = [each for each in step.parameters() if each.requires_grad]

    def compute(self, parts: Sequence[tuple[int, AnyBatch, bool]], targets: int, seed: int) -> Tensor:
        """Leave in the parameters the gradient of the mean loss, over `targets` in all processes; return that mean.

        All processes have equally many parts, each a number, a batch and whether it counts: a process with one part
        fewer than others computes one that counts for nothing.
        """
        device = local_tensor(self.parameters[0]).device
        for parameter in self.parameters:
            parameter.grad = None
        total = torch.zeros((), dtype=torch.float64, device=device)
        for number, batch, counts in parts:
            with seeded_dropout(part_seed(seed, number), device):
                loss, plain = self.step(batch)
                (loss * (float(counts) / targets)).backward()
            if counts:
                total += plain.detach()
        data = self.mesh["replicate", "shard"]
        for axis in (0, 1):
            dist.all_reduce(total, group=data.get_group(axis))
        return total / targets

    @torch.no_grad()
    def clip(self, largest_norm: float) -> Tensor:
        """Scale the gradients down to a norm of `largest_norm`, unless that is 0; return the norm they had."""
        tensor = self.mesh["tensor"]
        split = [each.grad for each in self.parameters if _is_split(each)]
        same = [each.grad for each in self.parameters if not _is_split(each)]
        squares = _squares(split) + _squares(same) / tensor.size()
        for axis in ("shard", "tensor"):
            dist.all_reduce(squares, group=self.mesh[axis].get_group())
        norm = squares.sqrt()
        if largest_norm:
            scale = (largest_norm / (norm + 1e-6)).clamp(max=1.0)
            for parameter in self.parameters:
                if parameter.grad is not None:
                    gradient = local_tensor(parameter.grad)
                    gradient.mul_(scale.to(gradient.dtype))
        return norm


def _is_split(parameter: Tensor) -> bool:
    """Whether a parameter lies in parts along the tensor axis."""
    if not isinstance(parameter, DTensor):
        return False
    axes = parameter.device_mesh.mesh_dim_names or ()
    return "tensor" in axes and parameter.placements[axes.index("tensor")].is_shard()


def _squares(gradients: Sequence[Tensor | None]) -> Tensor:
    found = [local_tensor(each).square().sum(dtype=torch.float64) for each in gradients if each is not None]
    return torch.stack(found).sum() if found else torch.zeros((), dtype=torch.float64)
