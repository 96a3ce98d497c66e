"""How far a run has come, when it ends, and when it validates."""

from __future__ import annotations

import time

from heedful.training.config import LimitConfig, SavingConfig, seconds
from heedful.training.run_state import RunState

VALIDATION_SHARE = 0.05
# Until the first validation its duration is unknown; no more than this share of a budget is kept for it.
LARGEST_ESTIMATE = 0.25
# The time for the last validation and the save after it, relative to what a validation takes or is expected to take.
RESERVE = 1.2


def in_minutes(seconds: float) -> str:
    """A time as minutes and seconds, or as seconds where it is short."""
    return f"{seconds:.2g} s" if seconds < 10 else f"{int(seconds // 60)}:{int(seconds % 60):02d}"


class Clock:
    """The seconds that a run has taken, over all its starts."""

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
        # The last validation and the save after it must fit into the budget too.
        self.reserve = 0.0
        self._used_up = False

    def progress(self, state: RunState, batches_in_epoch: int) -> float | None:
        """Between 0 and 1, or None for a run without limit."""
        position = state.position
        if self.config.steps is not None:
            return position.step / self.config.steps
        if self.config.epochs is not None:
            return (position.epoch + position.batch / batches_in_epoch) / self.config.epochs
        if self.budget is not None:
            return self._progress_of_budget(state, self.budget - self.reserve)
        return None

    def _progress_of_budget(self, state: RunState, end: float) -> float:
        """Spread what is left of the schedule evenly over the time that is left, so that it never goes back.

        The end moves with what the last validation is expected to take. The preparation of the data counts as time,
        but not as training: the learning rate rises after it.
        """
        before, now = max(state.progress_at, state.began), self.clock.elapsed()
        share = max(0.0, now - before) / max(end - before, 1e-9)
        state.progress = min(1.0, state.progress + (1.0 - state.progress) * share)
        state.progress_at = max(now, before)
        return state.progress

    def reopen(self, state: RunState) -> None:
        """Let a finished run go on, as a run of its new length from here."""
        state.finished = False
        if self.budget is not None:
            state.progress, state.progress_at = 0.0, state.began
        state.extended_at = self.progress(state, 1) or 0.0  # it ended with an epoch, if epochs limit it
        state.validations_passed = int(state.extended_at * self.saving.validations)

    def expect_validation(self, state: RunState, seconds: float) -> None:
        """Note how long a validation may take, until one has been timed."""
        if self.budget is not None and state.reserve == 0:
            self.reserve = min(RESERVE * seconds, LARGEST_ESTIMATE * self.budget)

    def note_validation(self, state: RunState, seconds: float) -> None:
        """Note how long a validation took."""
        state.reserve = self.reserve = RESERVE * seconds
        state.validating += seconds

    def over(self, state: RunState) -> bool:
        """Whether the run is at its end."""
        if self.config.steps is not None:
            return state.position.step >= self.config.steps
        if self.config.epochs is not None:
            return state.position.epoch >= self.config.epochs
        if self.budget is not None:
            # Once and for all: the last validation may take less time than was kept for it.
            self._used_up = self._used_up or self.clock.elapsed() >= self.budget - self.reserve
            return self._used_up
        return state.validations_since_best >= self.config.patience

    def warning_of_preparation(self, state: RunState) -> str | None:
        """A warning if most of a budget went by before the first step."""
        if self.budget is None or state.began <= self.budget / 2:
            return None
        steps = state.position.step
        return (
            f"warning: preparing the data took {in_minutes(state.began)} of the budget of {in_minutes(self.budget)}: "
            f"only {steps:,} step{' was' if steps == 1 else 's were'} trained; give a longer --budget"
        )

    def pass_validation(self, state: RunState, progress: float | None) -> bool:
        """Whether to validate now, after a step; `state` notes how many were due so far."""
        if self.saving.validate_every_steps is not None:
            return state.position.step % self.saving.validate_every_steps == 0
        assert progress is not None
        due = int(progress * self.saving.validations)
        if due <= state.validations_passed or not self._can_afford_validation(state):
            return False
        state.validations_passed = due
        return True

    def _can_afford_validation(self, state: RunState) -> bool:
        """With a time budget, validations before the last one take no more than a share of the time."""
        if self.budget is None:
            return True
        return state.validating + self.reserve <= VALIDATION_SHARE * self.clock.elapsed()
