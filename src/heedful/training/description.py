"""The choices of a run in words, as its table shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from heedful.models.families import FAMILIES
from heedful.models.parameter_count import PUBLISHED_MILLIONS, counted
from heedful.tasks.job import Choice
from heedful.training.config import TrainingConfig
from heedful.training.extension import Extension, end_in_words
from heedful.training.identity import flat
from heedful.training.limits import VALIDATION_SHARE
from heedful.training.parallel.layout import AXES
from heedful.training.resolve import ResolvedRun
from heedful.training.run_config import RunConfig

GIVEN = "as asked"
PROCESSES = "processes"


def describe(run: RunConfig, resolved: ResolvedRun) -> list[Choice]:
    """Every choice but those of the data: what, which, and why."""
    preset, model, training = resolved.preset, resolved.model, resolved.training
    machine, batches, reasons = training.machine, training.batches, _Reasons(run)
    parameters = counted(FAMILIES[resolved.family].build_without_memory(model))
    published = PUBLISHED_MILLIONS.get(preset, "")
    of_preset = GIVEN if run.preset else "by the amount of data and the device"
    return [
        Choice("preset", preset, f"{of_preset}{': for the recipe alone' if run.data.start_folder else ''}"),
        Choice("model", model.summary(), resolved.family),
        Choice("parameters", f"{parameters:,}", published and f"published: {published} million"),
        Choice(
            "device",
            f"{machine.device}, {machine.workers} x {machine.threads} threads, {machine.precision}",
            reasons.of("training.machine", "by the machine"),
        ),
        *_layout(training),
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


def describe_extension(choices: Sequence[Choice], training: TrainingConfig, extension: Extension) -> tuple[Choice, ...]:
    """The choices of a run that is extended to a later end."""
    end = Choice("end", end_in_words(training.limit), GIVEN)
    rate = "the learning rate goes on as before"
    if training.schedule.kind == "decay":
        rate = (
            f"the learning rate warms up again over {training.schedule.warmup_share:.0%} of what is left, "
            "to where a run of this length has it, and falls to zero at the new end"
        )
    kept = [end if each.name == "end" else each for each in choices if each.name != "extended"]
    return (*kept, Choice("extended", f"after step {extension.step:,}", rate))


def with_layout(choices: Sequence[Choice], training: TrainingConfig) -> tuple[Choice, ...]:
    """The choices of a run that continues in other processes."""
    place = next(number for number, each in enumerate(choices) if each.name == "device") + 1
    kept = [each for each in choices if each.name != PROCESSES]
    return (*kept[:place], *_layout(training), *kept[place:])


def _layout(training: TrainingConfig) -> list[Choice]:
    """How a run is spread over processes, if there are several."""
    layout = training.parallel
    axes = {name: getattr(layout, name) or 1 for name in AXES}
    count = math.prod(axes.values())
    if count == 1:
        return []
    spread = " x ".join(f"{name} {size}" for name, size in axes.items() if size > 1)
    more = [
        text
        for text, on in (("activations computed twice", layout.activation_checkpointing), ("compiled", layout.compile))
        if on
    ]
    return [Choice(PROCESSES, f"{count}: {spread}", ", ".join([f"{layout.reduce} sums of gradients", *more]))]


class _Reasons:
    """Where settings came from: the user, the model that a run starts from, or elsewhere."""

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
