"""The number of processes changes no bit of a gradient, also where memory runs out in one of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from heedful.training.gradients import ParallelGradients
from heedful.training.parallel.world import ALONE, World
from heedful.training.parts import cut_parts
from heedful.training.step import TrainingStep
from linear_task import Rows
from process_group import run_in_processes

PIECES, ROWS = 4, 23


@dataclass(frozen=True)
class Taker:
    place: int
    places: int
    in_step: bool = False


def gradient(world: World, room: int) -> tuple[list[str], float, int]:
    """The bits of a gradient, the loss, and how often the parts were cut; more than `room` rows do not fit."""
    torch.manual_seed(3)
    model, splits = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)), []
    values = torch.randn(2 * ROWS, 5)

    def loss(model: torch.nn.Module, batch: Rows) -> tuple[Tensor, Tensor]:
        if len(batch.values) > room:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.")
        found = model(batch.values).square().sum()
        return found, found.detach()

    batches = list(np.split(np.arange(2 * ROWS), 2))
    taker = Taker(world.rank, world.size)
    parts = cut_parts(batches, PIECES, lambda indices: Rows(values[torch.from_numpy(indices)]), taker)
    gradients: ParallelGradients[Rows] = ParallelGradients(TrainingStep(model, loss), 2, 1, world)
    mean = gradients.compute(parts, world.sums(parts.sums)[0], 1, lambda: splits.append(1))
    return [each.grad.numpy().tobytes().hex() for each in model.parameters()], mean, len(splits)  # type: ignore[union-attr]


def all_and_too_little_room(world: World) -> list[object]:
    """Everything fits; then too little does in the last process alone."""
    last = world.rank == world.size - 1
    return [gradient(world, 100), gradient(world, 3 if last else 100)]


def test_two_three_and_four_processes_give_the_bits_of_one(tmp_path: Path) -> None:
    fits, cut = gradient(ALONE, 100), gradient(ALONE, 3)
    assert (fits[2], cut[2]) == (0, 1) and fits[0] != cut[0]
    for size in (2, 3, 4):  # three share eight parts unevenly, as after the loss of a machine
        for found in run_in_processes(size, tmp_path / str(size), all_and_too_little_room):
            assert [tuple(each) for each in found] == [fits, cut]
