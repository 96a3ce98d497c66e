"""The gradients of one optimizer step: in parallel, in a fixed order, and in smaller parts where memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Generic

import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.layers.dropout import seeded_dropout
from heedful.machine.memory import out_of_memory
from heedful.tasks.task import AnyBatch
from heedful.training.parallel.world import ALONE, World
from heedful.training.parts import Parts, quartered
from heedful.training.step import TrainingStep

if TYPE_CHECKING:
    from heedful.training.parallel.exact import ExactSum

Computation = Future[tuple[tuple[Tensor, ...], Tensor]]


def start_worker(threads: int) -> None:
    """Set up a thread to compute as training does."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


def part_seed(seed: int, number: int) -> int:
    """The seed of a part's masks: its step and number, not what ran before, so that a run can be continued."""
    return seed * 1_009 + number


class ParallelGradients(Generic[AnyBatch]):
    """Computes the parts of a step side by side, each on its own threads.

    A part runs its operations on `threads` threads (usually one): workers that share nothing but the weights
    scale better than operations that are each split over all cores, and do not stall when a core is taken away.
    """

    def __init__(self, step: TrainingStep[AnyBatch], workers: int, threads: int, world: World = ALONE) -> None:
        self.step, self.world = step, world
        self.parameters = [each for each in step.parameters() if each.requires_grad]
        self.pool = ThreadPoolExecutor(workers, initializer=start_worker, initargs=(threads,))

    @cached_property
    def exact_sum(self) -> ExactSum:
        """What adds the gradients of all processes."""
        from heedful.training.parallel.exact import ExactSum

        return ExactSum(self.parameters, self.world.size)

    def compute(self, parts: Parts[AnyBatch], targets: int, seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token (`targets` in all) in the parameters; return that mean.

        Where memory runs out, in any process, everything is computed again with every batch in four parts: two might
        only just fit, and leave no room for anything else, such as a validation.
        """
        while True:
            losses = self._try(parts, targets, seed)
            if losses is not None:
                return reduce(add, losses) / targets  # `sum` rounds differently in some versions of Python
            smaller = quartered(parts, self.world.sums)
            if smaller is None:
                raise UserError(
                    "a single example does not fit into memory: lower model.max_length, or take a smaller preset"
                )
            parts = smaller
            on_split()

    def _try(self, parts: Parts[AnyBatch], targets: int, seed: int) -> list[float] | None:
        """The loss of each part, in order; None if memory ran out."""
        for parameter in self.parameters:
            parameter.grad = None
        if self.world.size == 1:
            try:
                return self._sum(parts, targets, seed)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                return None
        return self._sum_with_others(parts, targets, seed)

    def _start(self, parts: Parts[AnyBatch], targets: int, seed: int) -> list[Computation]:
        device = self.parameters[0].device

        def part(number: int, batch: AnyBatch) -> tuple[tuple[Tensor, ...], Tensor]:
            with seeded_dropout(part_seed(seed, number), device):
                loss, plain = self.step(batch)
                return torch.autograd.grad(loss / targets, self.parameters), plain

        return [self.pool.submit(part, *each) for each in zip(parts.numbers, parts.batches, strict=True)]

    def _sum(self, parts: Parts[AnyBatch], targets: int, seed: int) -> list[float]:
        losses = []
        futures = self._start(parts, targets, seed)
        try:
            # Summed in the order of the parts, whichever is ready first: the result is the same every time.
            while futures:
                gradients, plain = futures.pop(0).result()
                losses.append(float(plain))
                for parameter, gradient in zip(self.parameters, gradients, strict=True):
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        finally:
            wait(futures)  # after a failure the others must have released their memory
        return losses

    def _sum_with_others(self, parts: Parts[AnyBatch], targets: int, seed: int) -> list[float] | None:
        """The same over all processes; before anything is exchanged, they agree that all have computed their parts."""
        done: list[tuple[tuple[Tensor, ...], Tensor]] = []
        failed = False
        for future in self._start(parts, targets, seed):
            try:
                done.append(future.result())
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                failed = True
        if self.world.any(failed):
            return None
        losses = torch.zeros(sum(map(len, parts.everyones)), dtype=torch.float64)
        for number, (_, plain) in zip(parts.numbers, done, strict=True):
            losses[number] = plain
        gradients = ((number, each) for number, (each, _) in zip(parts.numbers, done, strict=True))
        with self.world.naming_failures():
            summed = self.exact_sum.sum(gradients, parts.everyones)
        for parameter, gradient in zip(self.parameters, summed, strict=True):
            parameter.grad = gradient
        return self.world.number_sums(losses.tolist())
