"""The parts of an optimizer step: how many there are does not depend on how many processes compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol

import numpy as np

from heedful.tasks.task import AnyBatch, Indices


@dataclass(frozen=True)
class Parts(Generic[AnyBatch]):
    """This process's parts of a step, and their numbers; `everyones` are the numbers that each process has.

    `filler` is a batch for a process that has fewer parts than others, where all must compute together.
    """

    numbers: list[int]
    batches: list[AnyBatch]
    everyones: list[list[int]]
    filler: AnyBatch | None = None

    @property
    def sums(self) -> list[int]:
        """Target tokens, real tokens, and all tokens of these parts."""
        return [
            sum(batch.num_targets for batch in self.batches),
            sum(batch.num_real for batch in self.batches),
            sum(batch.num_tokens for batch in self.batches),
        ]


class Taker(Protocol):
    """One that takes parts of a step: its place among `places`, and whether all must take equally many."""

    place: int
    places: int
    in_step: bool


def cut_parts(
    batches: Sequence[Indices], pieces: int, collate: Callable[[Indices], AnyBatch], taker: Taker
) -> Parts[AnyBatch]:
    """The parts `place`, `place + places`, ... of some batches that are cut into pieces, as tensors."""
    place, places = taker.place, taker.places
    cut = [part for indices in batches for part in np.array_split(indices, pieces)]
    parts = [part for part in cut if len(part)]
    everyones = [list(range(each, len(parts), places)) for each in range(places)]
    own = everyones[place]
    lacks = taker.in_step and len(own) < len(everyones[0])
    return Parts(own, [collate(parts[number]) for number in own], everyones, collate(parts[0]) if lacks else None)


def quartered(parts: Parts[AnyBatch], sums: Callable[[Sequence[int]], list[int]]) -> Parts[AnyBatch] | None:
    """Every batch in four parts, or None if that makes no more of them; `sums` adds numbers over all processes."""
    own = []
    for batch in parts.batches:
        own.append([quarter for half in batch.halves() for quarter in half.halves()])
    counts = [0] * sum(map(len, parts.everyones))
    for number, pieces in zip(parts.numbers, own, strict=True):
        counts[number] = len(pieces)
    counts = sums(counts)
    if sum(counts) == len(counts):
        return None
    begins = np.cumsum([0, *counts])
    everyones = [[n for old in theirs for n in range(begins[old], begins[old + 1])] for theirs in parts.everyones]
    numbers = [n for old in parts.numbers for n in range(int(begins[old]), int(begins[old + 1]))]
    return replace(parts, numbers=numbers, batches=[piece for pieces in own for piece in pieces], everyones=everyones)
