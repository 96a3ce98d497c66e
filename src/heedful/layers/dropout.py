"""Dropout whose mask is drawn as random bytes: on a CPU the usual one costs as much as a matrix product."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        count = x.numel()
        words = torch.empty(-(-count // 8), dtype=torch.int64).random_(-(2**63), None)
        keep = (words.view(torch.uint8)[:count] >= threshold).view(x.shape)
        ctx.save_for_backward(keep)
        ctx.scale = 256.0 / (256 - threshold)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep).mul_(ctx.scale), None


class Dropout(nn.Module):
    """Sets a share of the elements to zero in training; the share is a multiple of 1/256."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        assert 0.0 <= probability < 1.0, probability
        self.probability = probability
        self.threshold = round(probability * 256)

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements and scale the others up, so that the expected value stays."""
        if not self.training or self.threshold == 0:
            return x
        if x.device.type != "cpu":
            return torch.nn.functional.dropout(x, self.threshold / 256)
        return _ByteDropout.apply(x, self.threshold)
