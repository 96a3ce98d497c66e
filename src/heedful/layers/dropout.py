"""Dropout whose mask is drawn as random bytes: on a CPU the usual mask costs as much as a matrix product."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class _Share:
    """The wanted part of a mask: along an axis, from a place on, out of this length."""

    axis: int
    first: int
    length: int

    def whole(self, shape: torch.Size) -> list[int]:
        """The shape of the whole, given that of the part."""
        return [self.length if place == self.axis % len(shape) else size for place, size in enumerate(shape)]


class _Source(threading.local):
    """The generator that the calling thread draws its masks from; None is torch's own.

    With a `share`, tensors are parts of larger ones, and their masks are too.
    """

    generator: torch.Generator | None = None
    share: _Share | None = None


_source = _Source()


@contextmanager
def seeded_dropout(seed: int, device: torch.device) -> Iterator[None]:
    """Draw the masks of this thread from a fresh generator, whatever other threads are doing.

    On devices other than a CPU, where one thread computes, torch's own generator is seeded.
    """
    if device.type != "cpu":
        torch.manual_seed(seed)
        yield
        return
    with _drawing_from(torch.Generator().manual_seed(seed)):
        yield


@contextmanager
def _drawing_from(generator: torch.Generator) -> Iterator[None]:
    before = _source.generator
    _source.generator = generator
    try:
        yield
    finally:
        _source.generator = before


def masks_so_far() -> Tensor:
    """The state of this thread's mask generator, as bytes that another process can continue from."""
    assert _source.generator is not None
    return _source.generator.get_state()


@contextmanager
def dropout_after(state: Tensor) -> Iterator[None]:
    """Continue the masks of another thread or process in this thread, from a state that `masks_so_far` returned.

    Layers spread over several processes, one after the other, thus drop what they would drop in one.
    """
    generator = torch.Generator()
    generator.set_state(state)
    with _drawing_from(generator):
        yield


@contextmanager
def dropout_of_share(axis: int, first: int, length: int) -> Iterator[None]:
    """Drop from tensors what would be dropped from the whole ones, of which they are the part from `first` of an axis.

    Layers that are split over processes thus drop together what they would drop in one.
    """
    before = _source.share
    _source.share = _Share(axis, first, length)
    try:
        yield
    finally:
        _source.share = before


def same_masks_again() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Two contexts for torch's checkpoint: one for a computation, and one for its repetition with the same masks.

    Torch takes care of its own generator.
    """
    if _source.generator is None:
        return nullcontext(), nullcontext()
    return nullcontext(), _drawing_from(_source.generator.clone_state())


def _mask(x: Tensor, threshold: int) -> Tensor:
    """0 where a random byte is below the threshold, and elsewhere the factor that makes up for it.

    It has the type of `x`: a product with it is one pass, forward and backward, and faster than one with booleans.
    """
    count = x.numel()
    words = torch.empty(-(-count // 8), dtype=torch.int64)
    words.random_(-(2**63), None, generator=_source.generator)
    mask = torch.ge(words.view(torch.uint8)[:count], threshold, out=x.new_empty(count))
    return mask.mul_(256.0 / (256 - threshold)).view(x.shape)


# The same as an operation that a compiler leaves as it is: it must not redraw masks, or change their order. The data
# fixes the order, since what is dropped depends on what was dropped before.
_operations = torch.library.Library("heedful", "FRAGMENT")
_operations.define("dropout_mask(Tensor x, int threshold) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
_operations.impl("dropout_mask", _mask, "CPU")
_operations.impl("dropout_mask", lambda x, threshold: x.new_empty(x.shape), "Meta")


def dropout(x: Tensor, probability: float) -> Tensor:
    """Set a share of the elements to zero, and scale the others up so that the expected value stays the same.

    On a CPU the share is rounded to a multiple of 1/256.
    """
    share = _source.share
    if share is not None:
        whole = x.new_ones(()).expand(share.whole(x.shape))
        with _whole():
            mask = dropout(whole, probability)
        return x * mask.narrow(share.axis, share.first, x.shape[share.axis])
    if x.device.type != "cpu":
        return F.dropout(x, probability)
    threshold = round(probability * 256)
    if not threshold:
        return x
    if torch.compiler.is_compiling():
        return x * torch.ops.heedful.dropout_mask(x.detach(), threshold)
    return x * _mask(x, threshold)


@contextmanager
def _whole() -> Iterator[None]:
    before, _source.share = _source.share, None
    try:
        yield
    finally:
        _source.share = before


class Dropout(nn.Module):
    """`dropout` in training, nothing otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        assert 0.0 <= probability < 1.0, probability
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements, if in training."""
        return dropout(x, self.probability) if self.training and self.probability else x
