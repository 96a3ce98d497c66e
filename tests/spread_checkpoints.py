"""Saving and reading a model that is spread over processes, for the tests of its checkpoints."""

import resource
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.training.checkpoint import check_checkpoint, save_checkpoint
from heedful.training.config import ParallelConfig
from heedful.training.parallel.apply import make_mesh, parallelize
from heedful.training.parallel.pieces import Share, shares_of
from heedful.training.parallel.spread_checkpoint import read_shares, save_shares, writing_group
from heedful.training.parallel.world import World
from heedful.training.step import TrainingStep
from parallel_models import CASES, build

NAMES = ("translation", "gpt_swiglu_grouped_rotary")
STATE = {"position": 7}


def numbered(model: nn.Module) -> dict[str, Tensor]:
    """Whole tensors, each number of which tells its place."""
    shapes = {name: each.shape for name, each in model.named_parameters()}
    found = {}
    for number, (name, shape) in enumerate(shapes.items()):
        found[name] = torch.arange(shape.numel(), dtype=torch.float32).view(shape) + number / 64
    return found


class Spread:
    """A model in the layout of this group, whose shares a checkpoint is made of."""

    def __init__(self, name: str, layout: dict[str, Any]) -> None:
        config = ParallelConfig(**layout)
        self.model, self.mesh = build(CASES[name], torch.float32), make_mesh(config, "cpu")
        self.whole = numbered(self.model)
        self.placements = parallelize(TrainingStep(self.model, CASES[name].loss), self.model, self.mesh, config)

    def shares(self) -> dict[str, Share]:
        found = shares_of(dict(self.model.named_parameters()), self.placements, self.mesh)
        shares = {f"model/{name}": share for name, share in found.items()}
        return {**shares, "optimizer/count/step": shares_of({"step": torch.tensor(3.0)}, {}, self.mesh)["step"]}

    def pieces(self) -> list[tuple[Tensor, Tensor]]:
        """What this process has, beside what it should have."""
        shares = self.shares()
        return [
            (piece.of(shares[f"model/{name}"].local), piece.in_whole(whole))
            for name, whole in self.whole.items()
            for piece in shares[f"model/{name}"].pieces
        ]

    @torch.no_grad()
    def fill(self, value: float | None = None) -> None:
        for own, wanted in self.pieces():
            own.copy_(wanted) if value is None else own.fill_(value)

    def is_right(self) -> bool:
        return all(torch.equal(own, wanted) for own, wanted in self.pieces())


def save_and_read(world: World, folder: str, layouts: list[dict[str, Any]]) -> dict[str, Any]:
    """What went wrong in every layout, and what is told of a disk that takes no more."""
    group = writing_group(60.0)
    wrong = _read_everywhere(world, folder, layouts, group)
    return {"wrong": wrong, "told": _save_with_a_small_disk(world, Path(folder, "small"), group)}


def _read_everywhere(
    world: World, folder: str, layouts: list[dict[str, Any]], group: torch.distributed.ProcessGroup
) -> list[Any]:
    """Save under every layout and as one process does; what each layout cannot read of each is given."""
    wrong = []
    for name in NAMES:
        spread = [Spread(name, layout) for layout in layouts]
        for number, each in enumerate(spread):
            each.fill()
            save_shares(Path(folder, name), number, each.shares(), STATE, group)
        if world.leads:
            tensors = {"model": spread[0].whole, "optimizer": {"count/step": torch.tensor(3.0)}}
            save_checkpoint(Path(folder, name), len(layouts), tensors, STATE)
        torch.distributed.barrier()
        for number in range(len(layouts) + 1):
            path = Path(folder, name, f"step-{number:09d}")
            for layout, each in zip(layouts, spread, strict=True):
                each.fill(-1.0)
                with torch.no_grad():
                    read_shares(path, check_checkpoint(path)[0], each.shares())
                if not each.is_right():
                    wrong.append([name, number, layout])
    return wrong


def _save_with_a_small_disk(world: World, folder: Path, group: torch.distributed.ProcessGroup) -> str:
    """What each process is told when the third one cannot write its file."""
    spread, told = Spread("gpt_swiglu_grouped_rotary", {"shard": 4}), "nothing"
    save_shares(folder, 1, spread.shares(), STATE, group)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if world.rank == 2:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        save_shares(folder, 2, spread.shares(), STATE, group)
    except UserError as error:
        told = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    save_shares(folder, 3, spread.shares(), STATE, group)
    return told
