"""How far a run has come, when it ends, and when it validates."""

from __future__ import annotations

import time

from heedful.training.config import LimitConfig, SavingConfig, seconds
from heedful.training.run_state import RunState

VALIDATION_SHARE = 0.05


class Clock:
    """The seconds that a run has taken, over all the times that it was started."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.before = 0.0

    def elapsed(self) -> float:
        """Seconds from the first start, less the pauses."""
        return self.before + time.monotonic() - self.started


class Limit:
    """The share of a run that is over, by the one limit that was set."""

    def __init__(self, config: LimitConfig, saving: SavingConfig, clock: Clock) -> None:
        self.config, self.saving, self.clock = config, saving, clock
        self.budget = seconds(config.budget) if config.budget else None
        # What the last validation and the saving after it take must fit into the budget too.
        self.reserve = 0.0

    def progress(self, state: RunState, batches_in_epoch: int) -> float | None:
        """Between 0 and 1, or None for a run without limit."""
        position = state.position
        if self.config.steps is not None:
            return position.step / self.config.steps
        if self.config.epochs is not None:
            return (position.epoch + position.batch / batches_in_epoch) / self.config.epochs
        if self.budget is not None:
            # The preparation of the data counts as time, but not as training: the learning rate rises after it.
            steps = self.budget - self.reserve - state.began
            return min(1.0, (self.clock.elapsed() - state.began) / max(steps, 1e-9))
        return None

    def over(self, state: RunState) -> bool:
        """Whether the run is at its end."""
        if self.config.steps is not None:
            return state.position.step >= self.config.steps
        if self.config.epochs is not None:
            return state.position.epoch >= self.config.epochs
        if self.budget is not None:
            return self.clock.elapsed() >= self.budget - self.reserve
        return state.validations_since_best >= self.config.patience

    def pass_validation(self, state: RunState, progress: float | None) -> bool:
        """Whether to validate now, after a step; `state` takes note of what was due since the last time."""
        if self.saving.validate_every_steps is not None:
            return state.position.step % self.saving.validate_every_steps == 0
        assert progress is not None
        due = int(progress * self.saving.validations)
        if due <= state.validations_passed or not self._can_afford_validation(state):
            return False
        state.validations_passed = due
        return True

    def _can_afford_validation(self, state: RunState) -> bool:
        """Of a time budget, validations before the last take no more than a share."""
        if self.budget is None:
            return True
        return state.validating + self.reserve <= VALIDATION_SHARE * self.clock.elapsed()
