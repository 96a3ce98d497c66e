"""All layouts of a number of GPUs, by closed forms: which fit into memory, and which of those are fastest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

from heedful.errors import UserError
from heedful.planning.flops import Flops, flops_of
from heedful.planning.layouts import Layout, meshes
from heedful.planning.measured import Measured
from heedful.planning.memory import memory_of
from heedful.planning.parameters import ModelParameters, parameters_of
from heedful.planning.quantities import shown
from heedful.planning.shape import ModelShape, shape_of
from heedful.planning.subject import Subject
from heedful.planning.timing import SECONDS_PER_DAY, Hardware, step_seconds
from heedful.planning.traffic import traffic_of

# Steps may be this many times as large as the settings ask before a layout ranks after all others.
MOST_LARGER = 4
# The largest power of two tried as a number of GPUs when those given are not enough.
MOST_GPUS = 2**17


@dataclass(frozen=True)
class PlannedLayout:
    """A layout with what closed forms say about it, and what was measured, if it was."""

    layout: Layout
    memory: dict[str, int]
    sent: dict[str, int]
    step_tokens: int
    step_seconds: float
    measured: Measured | None = None

    @property
    def total(self) -> int:
        """Bytes of one GPU at the peak: as measured, or else by the closed forms."""
        return self.measured.total if self.measured else sum(self.memory.values())

    def days(self, tokens: float) -> float:
        """Days of a run over this many tokens."""
        return tokens / self.step_tokens * self.step_seconds / SECONDS_PER_DAY


@dataclass(frozen=True)
class Planner:
    """Closed forms of one model."""

    subject: Subject
    shape: ModelShape
    parameters: ModelParameters
    flops: Flops

    @staticmethod
    def of(subject: Subject) -> Planner:
        """The planner of a subject."""
        shape = shape_of(subject.family, subject.model)
        return Planner(subject, shape, parameters_of(subject.family, subject.model), flops_of(shape))

    @property
    def size(self) -> int:
        """The bytes of each number that blocks compute with."""
        return 2 if self.subject.precision == "bf16" else 4

    def ranked(self, gpus: int, hardware: Hardware) -> list[PlannedLayout]:
        """The layouts that fit, each with its fastest way to cut a step into parts; the fastest of all first.

        Those whose steps had to be made much larger, to give every GPU a sequence, come after all others. Of layouts
        that are about equally fast, the one that needs less memory comes first.
        """
        best = []
        for mesh in meshes(self.shape, self.subject.family, gpus):
            fitting = [each for each in self._cuts(mesh, hardware) if each.total <= hardware.memory]
            if fitting:
                best.append(min(fitting, key=lambda each: each.step_seconds / each.step_tokens))
        return sorted(best, key=self._rank)

    def smallest(self, gpus: int, hardware: Hardware) -> PlannedLayout:
        """The layout that needs the least memory."""
        every = [each for mesh in meshes(self.shape, self.subject.family, gpus) for each in self._cuts(mesh, hardware)]
        return min(every, key=lambda each: each.total)

    def _rank(self, planned: PlannedLayout) -> tuple[bool, float, int]:
        speed = float(f"{planned.step_seconds / planned.step_tokens:.1e}")
        return planned.step_tokens > MOST_LARGER * self.subject.step_tokens, speed, planned.total

    def _cuts(self, mesh: Layout, hardware: Hardware) -> Iterator[PlannedLayout]:
        """A step's sequences of one GPU in parts of 1, 2, 4 ..., with and without recomputing."""
        own = max(1, self.subject.step_tokens // (mesh.copies * self.shape.tokens))
        sequences = 1
        while sequences <= own:
            for recompute in (False, True):
                layout = replace(mesh, recompute=recompute, sequences=sequences, parts=max(1, own // sequences))
                yield self.planned(layout, hardware)
            sequences *= 2

    def planned(self, layout: Layout, hardware: Hardware) -> PlannedLayout:
        """What closed forms say about a layout."""
        average = bool(self.subject.training.ema_decay)
        memory = memory_of(self.shape, self.parameters, layout, self.size, average)
        sent = traffic_of(self.shape, self.parameters, layout, self.size)
        part = layout.sequences * self.shape.tokens
        seconds = step_seconds(self.flops, part, layout, sent, hardware)
        return PlannedLayout(layout, memory, sent, layout.step_sequences() * self.shape.tokens, seconds)


def refuse(planner: Planner, gpus: int, hardware: Hardware, smallest: PlannedLayout) -> NoReturn:
    """Raise a UserError that says what a model that fits in no layout would need, given the smallest one."""
    # If it was measured, closed forms are taken to be as far off with more GPUs.
    closed = hardware.memory * sum(smallest.memory.values()) / smallest.total
    enough = _enough_gpus(planner, gpus, replace(hardware, memory=closed))
    more = f"about {enough:,} such GPUs are enough" if enough else "no number of such GPUs is enough"
    raise UserError(
        f"{planner.subject.name} fits in no layout of {gpus:,} GPUs with {shown(hardware.memory, 'B')} each: "
        f"the smallest, {smallest.layout}, needs {shown(smallest.total, 'B')} per GPU; {more}"
    )


def _enough_gpus(planner: Planner, gpus: int, hardware: Hardware) -> int | None:
    """The first power of two above a number of GPUs with a layout that fits."""
    larger = 1 << gpus.bit_length()
    while larger <= MOST_GPUS:
        if planner.smallest(larger, hardware).total <= hardware.memory:
            return larger
        larger *= 2
    return None
