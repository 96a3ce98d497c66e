"""The gradients of one optimizer step: in parallel, in a fixed order, and whatever the memory holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Generic

import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.layers.dropout import seeded_dropout
from heedful.machine.memory import out_of_memory
from heedful.tasks.task import AnyBatch
from heedful.training.step import TrainingStep


def _start_worker(threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)


def part_seed(seed: int, number: int) -> int:
    """What seeds the masks of a part: its step and number, not what ran before, so that a run can be continued."""
    return seed * 1_009 + number


class ParallelGradients(Generic[AnyBatch]):
    """Computes the parts of a step side by side, each on threads of its own.

    A part runs its operations on `threads` threads (one, as a rule): workers that share nothing but the weights
    scale better than operations that are each split over all cores, and do not stall when a core is taken away.
    """

    def __init__(self, step: TrainingStep[AnyBatch], workers: int, threads: int) -> None:
        self.step = step
        self.parameters = [each for each in step.parameters() if each.requires_grad]
        self.pool = ThreadPoolExecutor(workers, initializer=_start_worker, initargs=(threads,))

    def compute(self, batches: Sequence[AnyBatch], seed: int, on_split: Callable[[], None]) -> float:
        """Leave the gradient of the mean loss per target token in the parameters, and give that mean.

        Where memory runs out, all is computed anew with every batch in four parts: two might just fit, and leave
        no room for anything else, such as a validation.
        """
        while True:
            try:
                return self._sum_parts(batches, seed)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
            halves = [half for batch in batches for half in batch.halves()]
            quarters = [quarter for half in halves for quarter in half.halves()]
            if len(quarters) == len(batches):
                raise UserError(
                    "a single example does not fit into memory: lower model.max_length, or take a smaller preset"
                )
            batches = quarters
            on_split()

    def _sum_parts(self, batches: Sequence[AnyBatch], seed: int) -> float:
        targets = sum(batch.num_targets for batch in batches)
        device = self.parameters[0].device
        total = 0.0

        def part(number: int, batch: AnyBatch) -> tuple[tuple[Tensor, ...], Tensor]:
            with seeded_dropout(part_seed(seed, number), device):
                loss, plain = self.step(batch)
                return torch.autograd.grad(loss / targets, self.parameters), plain

        for parameter in self.parameters:
            parameter.grad = None
        futures = [self.pool.submit(part, number, batch) for number, batch in enumerate(batches)]
        try:
            # Summed in the order of the parts, whichever is ready first: the result is the same every time.
            while futures:
                gradients, plain = futures.pop(0).result()
                total += float(plain)
                for parameter, gradient in zip(self.parameters, gradients, strict=True):
                    parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        finally:
            wait(futures)  # after a failure the others must have let go of their memory
        return total / targets
