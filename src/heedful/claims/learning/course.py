"""The short course of training that all claims use: Adam, a warm-up, and a rate that falls to zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from heedful.claims.evidence import DIVERGED, mean_loss, shown_loss
from heedful.claims.learning.clock import seconds_now


@dataclass(frozen=True)
class Course:
    """How long and how fast a model learns; the rate rises over a tenth of the steps, then falls as a cosine.

    With `seconds`, the course ends after this much time, and the rate follows the time, not the steps.
    """

    steps: int
    learning_rate: float = 0.004
    clip_norm: float = 1.0
    seconds: float | None = None


# The rates to choose from for each kind of model, where one rate would not suit all kinds compared; and the seed used
# to choose, which no result uses.
RATES = (0.002, 0.004, 0.008)
PILOT_SEED = 0


@dataclass(frozen=True)
class Learned:
    """The loss of each step of the course, and the seconds that had passed after each that was taken.

    A run that diverged has the loss `DIVERGED` from there on.
    """

    losses: list[float]
    seconds: list[float]

    @property
    def end(self) -> float:
        """The mean loss of the last tenth of the steps."""
        return mean_loss(self.losses[-max(1, len(self.losses) // 10) :])

    @property
    def curve(self) -> list[float]:
        """The losses in about twenty points, each the mean of as many steps."""
        size = max(1, len(self.losses) // 20)
        return [mean_loss(self.losses[start : start + size]) for start in range(0, len(self.losses), size)]


def best_rate(end: Callable[[float], float]) -> float:
    """The rate with which a pilot's training loss ends lowest."""
    return min(RATES, key=end)


def told_rates(rates: dict[str, float]) -> str:
    """The chosen rates, each with the kinds that got it, in words."""
    kinds = {rate: [kind for kind, chosen in rates.items() if chosen == rate] for rate in sorted(set(rates.values()))}
    return "; ".join(f"{rate:g} for {', '.join(found)}" for rate, found in kinds.items())


def rate_at(done: float) -> float:
    """The share of the learning rate after a share of the course."""
    return min(1.0, done / 0.1) * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def learn(model: nn.Module, loss: Callable[[int], Tensor], course: Course) -> Learned:
    """Train a model on the losses of steps 0, 1, ...; a loss that is not finite ends the course.

    The weights are then no longer numbers, so that whatever is measured of the model is as bad as it can be.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=course.learning_rate, betas=(0.9, 0.98), weight_decay=0.0)
    losses: list[float] = []
    seconds: list[float] = []
    model.train()
    began = seconds_now()
    for step in range(course.steps):
        spent = seconds_now() - began
        if course.seconds is not None and spent >= course.seconds:
            break
        done = (step + 1) / course.steps if course.seconds is None else spent / course.seconds
        optimizer.param_groups[0]["lr"] = course.learning_rate * rate_at(done)
        optimizer.zero_grad(set_to_none=True)
        value = loss(step)
        losses.append(shown_loss(float(value.detach())))
        if not value.isfinite():
            seconds.append(seconds_now() - began)
            # Runs that are compared step by step have as many losses.
            losses += [DIVERGED] * (course.steps - len(losses) if course.seconds is None else 0)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.fill_(math.nan)
            break
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), course.clip_norm)
        optimizer.step()
        seconds.append(seconds_now() - began)
    model.eval()
    return Learned(losses, seconds)
