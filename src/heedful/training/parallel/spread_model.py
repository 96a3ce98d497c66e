"""What models spread over processes have in common: how they are measured, averaged, kept and saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import AdamW

from heedful.machine.shared_work import Sharing
from heedful.training.checkpoint import check_checkpoint
from heedful.training.config import TrainingConfig
from heedful.training.optimizer import optimizer_tensors
from heedful.training.parallel.lending import Lender
from heedful.training.parallel.pieces import Share
from heedful.training.parallel.spread_checkpoint import mean_of_shares, read_shares, save_shares
from heedful.training.parallel.world import World
from heedful.training.recovery import check_contents
from heedful.training.replica import in_memory
from heedful.training.run_state import RunState
from heedful.weights_writer import WeightStream, kind_of


class Average(Protocol):
    """A moving average of what a process holds."""

    tensors: dict[str, Tensor]

    def update(self, step: int) -> None:
        """Take in the parameters after a step."""


class Gradients(Protocol):
    """Computes and holds the gradients of a step."""

    def clip(self, largest_norm: float) -> Tensor:
        """Scale the gradients down, unless that is 0; return the norm they had."""


class SpreadModel(ABC):
    """A model of which this process holds a part, with its optimizer and average; others hold the rest.

    The task's own model holds nothing. When it computes, all processes lend each other what it needs (see `lending`).
    """

    model: nn.Module
    world: World
    optimizer: AdamW
    config: TrainingConfig
    average: Average | None
    gradients: Gradients
    # The names and shapes of all parameters, including those of other processes.
    shapes: Mapping[str, nn.Parameter]
    lender: Lender
    writers: dist.ProcessGroup
    _mean: dict[str, Tensor] | None = None

    @abstractmethod
    def whole(self, tensors: Mapping[str, Tensor], names: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
        """Some of the tensors that the processes hold together, whole, by parameter name, one at a time."""

    @abstractmethod
    def shares(self, tensors: Mapping[str, Tensor]) -> dict[str, Share]:
        """What this process holds of the tensors."""

    def clip(self) -> float:
        """Scale the gradients down, if so set; return the norm they had."""
        with self.world.naming_failures():
            return float(self.gradients.clip(self.config.optimizer.clip_norm))

    def update(self, step: int, rate: float) -> None:
        """Take the step."""
        for parameters in self.optimizer.param_groups:
            parameters["lr"] = rate
        self.optimizer.step()
        if self.average:
            self.average.update(step)

    def _kept(self, averaged: bool) -> Mapping[str, Tensor]:
        """The weights to measure and keep, as far as this process has them."""
        if self._mean is not None:
            return self._mean
        return self.average.tensors if self.average and averaged else dict(self.model.named_parameters())

    def measured(self, averaged: bool = True) -> AbstractContextManager[Sharing]:
        """Inside the block, the task's model has the weights to measure, in all processes together."""
        kept = self._kept(averaged)
        return self.lender.lending(lambda names: self.whole(kept, names))

    def weights(self, averaged: bool = True) -> WeightStream:
        """The weights that are kept, for all processes to take together, one at a time."""

        def gathered() -> Iterator[tuple[str, Tensor]]:
            with self.world.naming_failures(), torch.no_grad():
                yield from self.whole(self._kept(averaged), list(self.shapes))

        return WeightStream({name: kind_of(each) for name, each in self.shapes.items()}, gathered())

    @contextmanager
    def mean_of(self, checkpoints: list[Path]) -> Iterator[None]:
        """Inside the block, what is measured and kept is the mean of the weights of these checkpoints."""
        mean = {name: each.detach().clone() for name, each in self.model.named_parameters()}
        mean_of_shares(checkpoints, self.shares(mean))
        self._mean = mean
        try:
            yield
        finally:
            self._mean = None

    def checkpoint(self, folder: Path, state: RunState, *, copied: bool) -> Callable[[], object]:
        """A function that writes a checkpoint of the model as it is now: each process writes its own part."""
        shares = self._checkpoint_shares()
        if copied:
            shares = {name: replace(share, local=in_memory(share.local)) for name, share in shares.items()}
        step, content = state.position.step, state.to_dict()

        def write() -> None:
            with self.world.naming_failures():
                save_shares(folder, step, shares, content, self.writers)

        return write

    def _checkpoint_shares(self) -> dict[str, Share]:
        """What this process has of a checkpoint's content, by group and name."""
        groups: dict[str, Mapping[str, Tensor]] = {"model": dict(self.model.named_parameters())}
        groups["optimizer"] = optimizer_tensors(self.model, self.optimizer)
        if self.average:
            groups["average"] = self.average.tensors
        found = {group: self.shares(tensors) for group, tensors in groups.items()}
        return {f"{group}/{name}": share for group, shares in found.items() for name, share in shares.items()}

    def restore(self, path: Path) -> RunState:
        """Restore a checkpoint, and return its state; a DamagedCheckpointError if it cannot be used."""
        # The leading process comes first, and checks everyone's files.
        stored, content = check_checkpoint(path, checksums=self.world.leads)
        shapes = {name: each.shape for name, each in stored.items()}
        state = check_contents(path, content, shapes, self.shapes, self.average is not None)
        for name, parameter in self.model.named_parameters():
            if f"optimizer/{name}/step" in stored:
                moments = {key: torch.zeros_like(parameter) for key in ("exp_avg", "exp_avg_sq")}
                self.optimizer.state[parameter] = {"step": torch.zeros(()), **moments}
        with torch.no_grad():
            read_shares(path, stored, self._checkpoint_shares())
        return state
