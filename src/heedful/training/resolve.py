"""The choices of a run, made from what was asked for, its data and its machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from heedful.config import from_dict, merge, nearest
from heedful.errors import UserError
from heedful.machine.cores import available_cores
from heedful.machine.devices import choose_device, supports_bf16
from heedful.models.families import FAMILIES
from heedful.models.memory_plan import free_memory, tokens_that_fit
from heedful.models.parameter_count import counted
from heedful.presets import PRESETS
from heedful.presets.preset import given_settings
from heedful.presets.recipes import budget_recipe
from heedful.settings.families import FAMILY_SETTINGS
from heedful.settings.sizes import check_new_sizes
from heedful.tasks.job import Job, PreparedJob
from heedful.training.config import MachineConfig, TrainingConfig
from heedful.training.fit_of_start import refuse_other_sizes
from heedful.training.parallel.layout import check_stages, choose_layout, data_size
from heedful.training.run_config import RunConfig

# Each worker holds its own gradient.
MOST_WORKERS = 8


@dataclass(frozen=True)
class ResolvedRun:
    """A run with every setting filled in; `model` holds the settings of the family."""

    family: str
    preset: str
    model: Any
    training: TrainingConfig


def check_settings(run: RunConfig) -> None:
    """Raise a UserError for settings that cannot work, before any work is done."""
    family = _family(run.data, run.preset, run.family)
    for key in run.settings:
        if key not in ("model", "training"):
            raise UserError(f"unknown setting {key!r}: {nearest(key, ['model', 'training', 'data', 'preset'])}")
    if run.data.start_folder:
        refuse_other_sizes(run.data.start_folder, run.settings.get("model", {}))
    filled = _filled_before_data(run, family)
    if filled.training.schedule.kind == "decay" and filled.training.schedule.learning_rate is None:
        raise UserError("training.schedule.kind is decay, which needs training.schedule.learning_rate too")
    check_stages(filled.training.parallel, family)
    device = choose_device(filled.training.machine.device)
    sharing = data_size(filled.training.parallel)
    if device.type != "cpu" and (filled.training.machine.workers or 1) > 1 and sharing == 1:
        raise UserError(f"training.machine.workers is for CPUs: on {device.type} it must be 1")
    _model_before_data(filled)  # widths and heads must fit together


def check_layout(run: RunConfig, processes: int) -> None:
    """Raise a UserError if a new run cannot be laid out over this many processes, before its data is prepared."""
    filled = _filled_before_data(run, _family(run.data, run.preset, run.family))
    device = choose_device(filled.training.machine.device)
    layout = choose_layout(filled.training.parallel, processes, device.type)
    tensor = layout.tensor or 1
    _check_memory(_model_before_data(filled), tensor * (layout.shard or 1) * (layout.pipeline or 1), device)
    if tensor > 1 and run.preset:  # otherwise the data settles how many heads there are
        from heedful.training.parallel.tensor import check_split

        check_split(_model_before_data(filled), tensor)


def _check_memory(model: nn.Module, shares: int, device: torch.device) -> None:
    """Raise a UserError if the parameters and tables of a share of the model alone do not fit into the memory."""
    numbers = counted(model) + sum(buffer.numel() for buffer in model.buffers())
    needed, free = 4 * numbers / shares, free_memory(device)
    if needed > free:
        raise UserError(
            f"the model has at least {numbers / 1e9:,.1f} billion numbers, which take {needed / 1e9:,.0f} GB in each "
            f"process, but there are {free / 1e9:,.0f} GB: choose smaller settings of the model, or see "
            "`heedful plan` for what it takes"
        )


def _filled_before_data(run: RunConfig, family: str) -> ResolvedRun:
    """What was asked for, with the settings of some preset of the family if none was named."""
    some_preset = next(name for name, preset in PRESETS.items() if preset().family == family)
    return fill_in(run.preset or some_preset, run.settings)


def _model_before_data(filled: ResolvedRun) -> nn.Module:
    """The model without its memory, and with a vocabulary of any size if the data will settle that."""
    model = filled.model
    check_new_sizes(model)
    if getattr(model, "vocabulary_size", 0) is None:
        model = replace(model, vocabulary_size=1)
    try:
        return FAMILIES[filled.family].build_without_memory(model)
    except RuntimeError as error:  # sizes that torch cannot count
        raise UserError(f"the settings do not make a model: {str(error).splitlines()[0]}") from None


def _family(job: Job, preset: str | None, family: str | None) -> str:
    """The family that was asked for, by its name or by that of a preset."""
    fitting = [name for name, make in PRESETS.items() if make().family in job.families]
    if family is not None and family not in job.families:
        if job.start_folder:
            raise UserError(
                f"{job.start_folder} is of the family {job.families[0]!r}, not {family!r}: give one of the two"
            )
        raise UserError(f"unknown family {family!r} for this job: {nearest(family, list(job.families))}")
    if preset is None:
        return family or job.families[0]
    if preset not in fitting:
        raise UserError(f"unknown preset {preset!r} for this job: {nearest(preset, fitting)}")
    of_preset = PRESETS[preset]().family
    if family not in (None, of_preset):
        raise UserError(f"the preset {preset!r} is of the family {of_preset!r}, not {family!r}: give one of the two")
    return of_preset


def asked_model_settings(run: RunConfig) -> dict[str, Any]:
    """What was asked of the model; a preset that was named also settles how images are cut."""
    preset = given_settings(PRESETS[run.preset]())["model"] if run.preset else {}
    shape = {name: preset[name] for name in ("image_size", "patch_size") if name in preset}
    return {**shape, **run.settings.get("model", {})}


def fill_in(preset: str, settings: dict[str, Any]) -> ResolvedRun:
    """The preset's settings with the user's over them."""
    chosen = PRESETS[preset]()
    base = given_settings(chosen)
    training = settings.get("training", {})
    decays = chosen.training.schedule.kind == "decay"
    if not decays and isinstance(training, dict) and (training.get("limit") or {}).get("budget") is not None:
        base = merge(base, {"training": budget_recipe(chosen.model.width)})
    merged = merge(base, settings)
    return ResolvedRun(
        chosen.family,
        preset,
        from_dict(FAMILY_SETTINGS[chosen.family], merged["model"], "model"),
        from_dict(TrainingConfig, merged["training"], "training"),
    )


def choose(run: RunConfig, data: PreparedJob, processes: int = 1) -> ResolvedRun:
    """Fill in what the user left open, for a run of this many processes."""
    device = choose_device(run.settings.get("training", {}).get("machine", {}).get("device", "auto"))
    preset = run.preset or data.preset(_family(run.data, None, run.family), device)
    filled = fill_in(preset, run.settings)
    model = data.complete(filled.model)
    parameters = counted(FAMILIES[filled.family].build_without_memory(model))
    training = _with_limit(filled.training, data.num_tokens)
    training = replace(training, parallel=choose_layout(training.parallel, processes, device.type))
    training = _with_machine(training, device)
    most = tokens_that_fit(model, parameters, device, training.machine.workers or 1)
    training = _with_batches(training, data.num_tokens, most)
    check_parts(training)
    return ResolvedRun(filled.family, preset, model, training)


def _with_limit(training: TrainingConfig, tokens: int) -> TrainingConfig:
    """A run without a limit has no end to decay to: it follows the inverse square root, and validates by steps."""
    limit, schedule, saving = training.limit, training.schedule, training.saving
    if limit.steps is None and limit.epochs is None and limit.budget is None:
        if schedule.kind == "decay":
            schedule = replace(schedule, kind="inverse_square_root", warmup_steps=500)
        if saving.validate_every_steps is None:
            per_step = training.batches.tokens_per_step or step_tokens(tokens)
            saving = replace(saving, validate_every_steps=min(2000, max(50, tokens // per_step)))
    return replace(training, schedule=schedule, saving=saving)


def _with_machine(training: TrainingConfig, device: torch.device) -> TrainingConfig:
    machine = training.machine
    precision = machine.precision or ("bf16" if supports_bf16(device) else "fp32")
    cores = available_cores()
    workers = machine.workers or (min(cores, MOST_WORKERS) if device.type == "cpu" else 1)
    if machine.workers is None:  # equally many parts for every process, and enough to keep all stages busy
        sharing = data_size(training.parallel)
        workers = -(-max(workers, sharing * (training.parallel.pipeline or 1)) // sharing) * sharing
    threads = machine.threads or max(1, cores // workers)
    machine = MachineConfig(device.type, workers, threads, precision)  # type: ignore[arg-type]
    return replace(training, machine=machine)


def batches_per_step(training: TrainingConfig) -> int:
    """How many batches, each of which fits into memory, make a step."""
    sizes = training.batches
    assert sizes.tokens_per_step is not None and sizes.tokens_per_batch is not None
    return max(1, round(sizes.tokens_per_step / sizes.tokens_per_batch))


def check_parts(training: TrainingConfig, *, evenly: bool = True) -> None:
    """Raise a UserError unless the processes can share the parts of a step.

    A continued run need not share them `evenly`: after a machine is lost, some processes wait for others.
    """
    parts, sharing = batches_per_step(training) * (training.machine.workers or 1), data_size(training.parallel)
    if parts < sharing or (evenly and parts % sharing):
        raise UserError(
            f"a step of this run has {parts} part{'s' * (parts != 1)}, which {sharing} processes cannot share"
            f"{' evenly' * (parts >= sharing)}: start a number of processes that divides {parts}, "
            f"or start a run with training.machine.workers={sharing} in another folder"
        )


def step_tokens(tokens: int) -> int:
    """Tokens of an optimizer step: small corpora need many small steps."""
    return max(1500, min(16_000, tokens // 240))


def _with_batches(training: TrainingConfig, tokens: int, most: int) -> TrainingConfig:
    per_step = training.batches.tokens_per_step or step_tokens(tokens)
    per_batch = training.batches.tokens_per_batch or min(per_step, most)
    batches = replace(training.batches, tokens_per_step=per_step, tokens_per_batch=min(per_batch, per_step))
    return replace(training, batches=batches)
