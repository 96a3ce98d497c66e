"""Weights that are better than the last ones: a moving average of all steps, or the mean of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from heedful.training.stored_tensors import load_group, stored_tensors


class MovingAverage:
    """An exponential moving average of a model's parameters."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.model = model
        self.tensors = {name: each.detach().clone() for name, each in model.named_parameters()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the parameters after a step; early on the average forgets faster, so that it is not stale."""
        share = 1.0 - min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.tensors.values()), list(self.model.parameters()), share)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore a saved average."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside the block, the model computes with the averaged parameters."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.data, self.tensors[name] = self.tensors[name], parameter.data


def mean_of_checkpoints(paths: list[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints, summed in double precision (paper, 6.1)."""
    total: dict[str, Tensor] = {}
    for path in paths:
        for name, tensor in load_group(path, "model", stored_tensors(path)).items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}
