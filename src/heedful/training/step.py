"""One part of an optimizer step as a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

import torch
from torch import Tensor, nn

from heedful.tasks.task import AnyBatch

Loss = Callable[[Any, AnyBatch], tuple[Tensor, Tensor]]


class TrainingStep(nn.Module, Generic[AnyBatch]):
    """A batch in, the summed losses out: all that a step computes with a model, for one part of its examples.

    Anything that must see a whole part, such as a hook, a compiler or a wrapper that spreads parameters over machines,
    is applied to this module.
    """

    def __init__(self, model: nn.Module, loss: Loss[AnyBatch], bf16: bool = False) -> None:
        super().__init__()
        self.model, self.loss, self.bf16 = model, loss, bf16

    def forward(self, batch: AnyBatch) -> tuple[Tensor, Tensor]:
        """The summed loss to train on, and the summed loss to report."""
        device = next(self.model.parameters()).device
        with torch.autocast(device.type, torch.bfloat16, enabled=self.bf16):
            return self.loss(self.model, batch)
