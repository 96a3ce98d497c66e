"""The choices of a run in words, as its table shows them."""

from __future__ import annotations

from typing import Any

from heedful.models.parameter_count import PUBLISHED_MILLIONS
from heedful.presets import PRESETS
from heedful.tasks.job import Choice
from heedful.training.config import TrainingConfig
from heedful.training.extension import end_in_words
from heedful.training.identity import flat
from heedful.training.limits import VALIDATION_SHARE
from heedful.training.run_config import RunConfig

GIVEN = "as asked"


def describe(run: RunConfig, preset: str, model: Any, training: TrainingConfig, parameters: int) -> list[Choice]:
    """Every choice but those of the data: what, which, and why."""
    machine, batches, reasons = training.machine, training.batches, _Reasons(run)
    published = PUBLISHED_MILLIONS.get(preset, "")
    of_preset = GIVEN if run.preset else "by the amount of data and the device"
    return [
        Choice("preset", preset, f"{of_preset}{': for the recipe alone' if run.data.start_folder else ''}"),
        Choice("model", model.summary(), PRESETS[preset]().family),
        Choice("parameters", f"{parameters:,}", published and f"published: {published} million"),
        Choice(
            "device",
            f"{machine.device}, {machine.workers} x {machine.threads} threads, {machine.precision}",
            reasons.of("training.machine", "by the machine"),
        ),
        Choice(
            "tokens a step",
            f"{batches.tokens_per_step:,}",
            f"{batches.tokens_per_batch:,} at once, "
            + reasons.of("training.batches", "by the amount of data and the memory"),
        ),
        *_schedule(training, reasons),
        _averaging(training, reasons),
        _saving(training),
        Choice("end", end_in_words(training.limit), reasons.of("training.limit", "no limit was given")),
    ]


class _Reasons:
    """How settings came about: by the user, by the model that a run starts from, or otherwise."""

    def __init__(self, run: RunConfig) -> None:
        self.asked, self.of_start = flat(run.settings), flat(run.data.base_settings())

    def of(self, setting: str, otherwise: str) -> str:
        """Why a setting, or a table of them, is as it is."""
        names = [name for name in self.asked if name.startswith(setting)]
        if any(self.asked[name] != self.of_start.get(name) for name in names):
            return GIVEN
        return "for weights that are not random" if names and setting.startswith("training.schedule") else otherwise


def _schedule(training: TrainingConfig, reasons: _Reasons) -> list[Choice]:
    schedule = training.schedule
    why = reasons.of("training.schedule.learning_rate", "by the preset")
    warm_up = f"{schedule.warmup_steps:,} steps"
    if schedule.kind == "decay":
        warm_up = f"{schedule.warmup_share:.0%} of the run"
    return [
        Choice("learning rate", f"{schedule.learning_rate or 'of the paper'}", f"{schedule.kind}, {why}"),
        Choice("warm-up", warm_up, reasons.of("training.schedule.warmup", "by the preset")),
    ]


def _averaging(training: TrainingConfig, reasons: _Reasons) -> Choice:
    averaging = f"moving average, decay {training.ema_decay}" if training.ema_decay else "none"
    if training.average_checkpoints:
        averaging = f"mean of the last {training.average_checkpoints} checkpoints"
    why = reasons.of("training.average_checkpoints", reasons.of("training.ema_decay", "by the preset"))
    return Choice("averaging", averaging, why)


def _saving(training: TrainingConfig) -> Choice:
    saving = training.saving
    steps = training.limit.steps
    times = saving.validations if steps is None else min(saving.validations, steps)
    every, saved = f"{times} times" if times > 1 else "once, at the end", "saved every few seconds too"
    if saving.checkpoint_seconds is not None:
        saved = f"saved every {saving.checkpoint_seconds:g} s too"
    if saving.validate_every_steps:
        is_over_before = steps is not None and steps <= saving.validate_every_steps
        every = "once, at the end" if is_over_before else f"every {saving.validate_every_steps} steps"
    elif training.limit.budget:
        if saving.validations > 1:
            every = f"at the end, and up to {saving.validations - 1} times before"
        saved = f"those before in {VALIDATION_SHARE:.0%} of the time; {saved}"
    return Choice("validation", every, saved)
