"""Gradients summed over processes, with the same bits as in one process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

Part = tuple[int, Sequence[Tensor]]


class ExactSum:
    """Adds the gradients of all parts of a step in the order of their numbers, whichever process computed them.

    Every process receives a slice of each part's gradients, adds these, and sends its sum to all. So each number is
    added in the same order as in one process, which makes the bits the same. The memory is kept from step to step,
    because the system would have to clear it page by page each time; the sums overwrite what was sent.
    """

    def __init__(self, shapes: Sequence[Tensor], size: int) -> None:
        self.shapes, self.size = shapes, size
        self.length = sum(each.numel() for each in shapes)
        self.slice = -(-self.length // size)
        self._flat, self._received = (shapes[0].new_zeros(size * self.slice) for _ in range(2))
        self._total = shapes[0].new_zeros(self.slice)

    def sum(self, parts: Iterable[Part], numbers: Sequence[Sequence[int]]) -> list[Tensor]:
        """The sums, given this process's parts as they come, and which numbers each process has, in its order.

        They are valid until the next call.
        """
        waiting: dict[int, Tensor] = {}
        coming, due = iter(parts), 0
        for turn in range(max(map(len, numbers))):
            senders = [rank for rank in range(self.size) if turn < len(numbers[rank])]
            for rank, received in zip(senders, self._exchange(coming, senders), strict=True):
                waiting[numbers[rank][turn]] = received
            while due in waiting:
                added = waiting.pop(due)
                self._total = self._total.add_(added) if due else self._total.copy_(added)
                due += 1
            for rank in senders:  # the next turn is received into the same memory
                if (number := numbers[rank][turn]) in waiting:
                    waiting[number] = waiting[number].clone()
        assert due and not waiting
        return self._gather(self._total)

    def _exchange(self, coming: Iterable[Part], senders: Sequence[int]) -> list[Tensor]:
        """This process's slices, from all senders."""
        sends = dist.get_rank() in senders
        if sends:
            torch.cat([each.flatten() for each in next(iter(coming))[1]], out=self._flat[: self.length])
        received = self._received[: len(senders) * self.slice]
        dist.all_to_all_single(
            received,
            self._flat if sends else self._flat[:0],
            [self.slice if rank in senders else 0 for rank in range(self.size)],
            [self.slice if sends else 0] * self.size,
        )
        return list(received.split(self.slice))

    def _gather(self, own: Tensor) -> list[Tensor]:
        dist.all_gather(list(self._flat.split(self.slice)), own)
        pieces = self._flat[: self.length].split([each.numel() for each in self.shapes])
        return [piece.view(each.shape) for piece, each in zip(pieces, self.shapes, strict=True)]
