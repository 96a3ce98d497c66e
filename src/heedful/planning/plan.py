"""A plan: the layouts of a model on a number of GPUs, ranked, with the best of them measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from heedful.planning.flops import Flops
from heedful.planning.layouts import AXES
from heedful.planning.measured import measure
from heedful.planning.ranking import PlannedLayout, Planner, refuse
from heedful.planning.subject import Subject
from heedful.planning.timing import Hardware

# Layouts to measure, how many may be tried to find that many that fit, and how many are shown.
MEASURED, MOST_TRIED, SHOWN = 3, 6, 10


@dataclass(frozen=True)
class Plan:
    """What training a model on this many GPUs takes; `layouts` are the best that fit, by rank."""

    subject: Subject
    gpus: int
    tokens: float
    hardware: Hardware
    parameters: int
    flops: Flops
    fitting: int
    layouts: tuple[PlannedLayout, ...]

    def assumptions(self) -> list[str]:
        """All that was assumed, in words."""
        own = [f"{self.subject.name} has {each}" for each in self.subject.assumed]
        state = "parameters, gradients and the optimizer's two moments in fp32"
        average = " with a moving average" if self.subject.training.ema_decay else ""
        held = f"{state}{average}; blocks compute in {self.subject.precision}"
        lengths = "sequences are as long as the model takes, without padding"
        return [*own, held, lengths, *self.hardware.assumptions()]

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {
            "model": self.subject.name,
            "family": self.subject.family,
            "parameters": self.parameters,
            "flops_per_token": {
                "forward": self.flops.forward,
                "backward": self.flops.backward,
                "recomputed": self.flops.recomputed,
            },
            "gpus": self.gpus,
            "gpu_memory": int(self.hardware.memory),
            "tokens": int(self.tokens),
            "precision": self.subject.precision,
            "layouts_that_fit": self.fitting,
            "layouts": [self._layout(each) for each in self.layouts],
            "assumptions": self.assumptions(),
        }

    def _layout(self, planned: PlannedLayout) -> dict[str, Any]:
        layout, measured = planned.layout, planned.measured
        found = None
        if measured:
            found = {"memory": measured.memory, "total": measured.total, "sent_per_step": measured.sent}
        return {
            **{axis: getattr(layout, axis) for axis in AXES},
            "activation_checkpointing": layout.recompute,
            "sequences_per_part": layout.sequences,
            "parts_per_step": layout.parts,
            "tokens_per_step": planned.step_tokens,
            "steps": self.steps(planned),
            "seconds_per_step": planned.step_seconds,
            "days": planned.days(self.tokens),
            "closed_forms": {
                "memory": planned.memory,
                "total": sum(planned.memory.values()),
                "sent_per_step": planned.sent,
            },
            "measured": found,
        }

    def steps(self, planned: PlannedLayout) -> int:
        """Steps of a run."""
        return -(-int(self.tokens) // planned.step_tokens)


def make_plan(
    subject: Subject, gpus: int, tokens: float, hardware: Hardware, tell: Callable[[str], None] = lambda text: None
) -> Plan:
    """Rank all layouts by closed forms and measure the best; a UserError if none fits."""
    planner = Planner.of(subject)
    ranked = planner.ranked(gpus, hardware)
    if not ranked:
        refuse(planner, gpus, hardware, planner.smallest(gpus, hardware))
    fitting = _measured(ranked, subject, hardware, tell)
    if not fitting:
        # The fastest ways to cut a step need more memory than others, and none of these layouts has stages.
        smallest = _measure(planner.smallest(gpus, hardware), subject, tell)
        if smallest.total > hardware.memory:
            refuse(planner, gpus, hardware, smallest)
        fitting = [smallest]
    parameters, flops = planner.parameters.total, planner.flops
    return Plan(subject, gpus, tokens, hardware, parameters, flops, len(fitting), _shown(fitting))


def _measured(
    ranked: list[PlannedLayout], subject: Subject, hardware: Hardware, tell: Callable[[str], None]
) -> list[PlannedLayout]:
    """The layouts by rank, the first few of them measured, without those that turn out not to fit."""
    found = list(ranked)
    fitting = 0
    # Layouts with stages cannot be measured: stages are not applied to a model as the other axes are.
    for place in [place for place, each in enumerate(ranked) if each.layout.pipeline == 1][:MOST_TRIED]:
        found[place] = _measure(ranked[place], subject, tell)
        fitting += found[place].total <= hardware.memory
        if fitting == MEASURED:
            break
    return [each for each in found if each.total <= hardware.memory]


def _measure(planned: PlannedLayout, subject: Subject, tell: Callable[[str], None]) -> PlannedLayout:
    """The layout with what a step of it really takes."""
    tell(f"measuring a step of {planned.layout}")
    return replace(planned, measured=measure(subject, planned.layout))


def _shown(fitting: list[PlannedLayout]) -> tuple[PlannedLayout, ...]:
    """The layouts to show, by rank: those that were measured, and the best of the others."""
    measured = sum(each.measured is not None for each in fitting)
    others = [each for each in fitting if not each.measured][: SHOWN - measured]
    return tuple(each for each in fitting if each.measured or each in others)
