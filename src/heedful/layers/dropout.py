"""Dropout whose mask is drawn as random bytes: on a CPU the usual one costs as much as a matrix product."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _Source(threading.local):
    """Where the calling thread draws its masks from; None is torch's own generator."""

    generator: torch.Generator | None = None


_source = _Source()


@contextmanager
def seeded_dropout(seed: int, device: torch.device) -> Iterator[None]:
    """Draw the masks of this thread from a fresh generator, whatever other threads do meanwhile.

    On other devices than a CPU, where one thread computes, torch's own generator is seeded.
    """
    if device.type != "cpu":
        torch.manual_seed(seed)
        yield
        return
    before = _source.generator
    _source.generator = torch.Generator().manual_seed(seed)
    try:
        yield
    finally:
        _source.generator = before


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        count = x.numel()
        words = torch.empty(-(-count // 8), dtype=torch.int64)
        words.random_(-(2**63), None, generator=_source.generator)
        keep = (words.view(torch.uint8)[:count] >= threshold).view(x.shape)
        ctx.save_for_backward(keep)
        ctx.scale = 256.0 / (256 - threshold)
        return (x * keep).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (keep,) = ctx.saved_tensors
        return (gradients[0] * keep).mul_(ctx.scale), None


def dropout(x: Tensor, probability: float) -> Tensor:
    """Set a share of the elements to zero, and scale the others up so that the expected value stays.

    On a CPU the share is rounded to a multiple of 1/256.
    """
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    threshold = round(probability * 256)
    return _ByteDropout.apply(x, threshold) if threshold else x  # type: ignore[no-untyped-call]


class Dropout(nn.Module):
    """`dropout` in training, nothing otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        assert 0.0 <= probability < 1.0, probability
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements, if in training."""
        return dropout(x, self.probability) if self.training and self.probability else x
