"""Gradients summed over processes to the same bits as in one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

Part = tuple[int, Sequence[Tensor]]


class ExactSum:
    """Adds the gradients of all parts of a step in the order of their numbers, whichever process computed them.

    Every process is sent a slice of each part's gradients, adds these, and gives its sum to all. So each number is
    added in the same order as in one process, which is what makes the bits the same.
    """

    def __init__(self, shapes: Sequence[Tensor], size: int) -> None:
        self.shapes, self.size = shapes, size
        self.length = sum(each.numel() for each in shapes)
        self.slice = -(-self.length // size)

    def sum(self, parts: Iterable[Part], numbers: Sequence[Sequence[int]]) -> list[Tensor]:
        """The sums, given this process's parts as they come, and which numbers each process has, in its order."""
        total: Tensor | None = None
        waiting: dict[int, Tensor] = {}
        coming, due = iter(parts), 0
        for turn in range(max(map(len, numbers))):
            senders = [rank for rank in range(self.size) if turn < len(numbers[rank])]
            for rank, received in zip(senders, self._exchange(coming, senders), strict=True):
                waiting[numbers[rank][turn]] = received
            while due in waiting:
                added = waiting.pop(due)
                total = added if total is None else total.add_(added)
                due += 1
        assert total is not None and not waiting
        return self._gather(total)

    def _exchange(self, coming: Iterable[Part], senders: Sequence[int]) -> list[Tensor]:
        """The slices of this process, from all that send."""
        sends = dist.get_rank() in senders
        flat = self._flat(next(iter(coming))[1]) if sends else self.shapes[0].new_empty(0)
        received = self.shapes[0].new_empty(len(senders) * self.slice)
        dist.all_to_all_single(
            received,
            flat,
            [self.slice if rank in senders else 0 for rank in range(self.size)],
            [self.slice if sends else 0] * self.size,
        )
        return list(received.split(self.slice))

    def _flat(self, gradients: Sequence[Tensor]) -> Tensor:
        flat = self.shapes[0].new_zeros(self.size * self.slice)
        torch.cat([each.flatten() for each in gradients], out=flat[: self.length])
        return flat

    def _gather(self, own: Tensor) -> list[Tensor]:
        flat = own.new_empty(self.size, self.slice)
        dist.all_gather(list(flat.unbind()), own)
        pieces = flat.flatten()[: self.length].split([each.numel() for each in self.shapes])
        return [piece.view(each.shape) for piece, each in zip(pieces, self.shapes, strict=True)]
