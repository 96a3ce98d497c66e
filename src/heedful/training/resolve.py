"""The choices that a run makes from its data and its machine, made once, saved, and used again on resume."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from heedful.config import from_dict, merge, nearest, read_json, to_dict
from heedful.data.prepared import PreparedTranslation
from heedful.errors import UserError
from heedful.files import write_file
from heedful.machine import available_cores, choose_device, supports_bf16
from heedful.models.encoder_decoder import EncoderDecoderConfig
from heedful.models.memory_plan import tokens_that_fit
from heedful.parameter_count import PAPER_MILLIONS, formula
from heedful.presets import PRESETS
from heedful.training.config import MachineConfig, TrainingConfig
from heedful.training.run_config import RunConfig

# Each worker holds a gradient of its own.
MOST_WORKERS = 8


@dataclass(frozen=True)
class ResolvedRun:
    """A run with every setting filled in."""

    preset: str
    model: EncoderDecoderConfig
    training: TrainingConfig


@dataclass(frozen=True)
class Choice:
    """One choice, to be shown: what, which, and why."""

    name: str
    value: str
    reason: str


def check_settings(preset: str | None, settings: dict[str, Any]) -> None:
    """Raise a UserError for a preset or a setting that does not exist, before any work is done."""
    if preset is not None and preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}: {nearest(preset, list(PRESETS))}")
    for key in settings:
        if key not in ("model", "training"):
            raise UserError(f"unknown setting {key!r}: {nearest(key, ['model', 'training', 'data', 'preset'])}")
    fill_in(preset or "translation_tiny", settings)


def fill_in(preset: str, settings: dict[str, Any]) -> ResolvedRun:
    """The preset's settings with the user's over them."""
    merged = merge(PRESETS[preset](), settings)
    return ResolvedRun(
        preset,
        from_dict(EncoderDecoderConfig, merged["model"], "model"),
        from_dict(TrainingConfig, merged["training"], "training"),
    )


def resolve_or_reload(run: RunConfig, data: PreparedTranslation, file: Path) -> tuple[ResolvedRun, list[Choice]]:
    """The saved choices of a run that is continued, or fresh ones, which are saved."""
    requested = {"data": to_dict(run.data), "preset": run.preset, "settings": run.settings}
    if file.exists():
        saved = read_json(file)
        _refuse_changes(saved["requested"], json.loads(json.dumps(requested)), file)
        return from_dict(ResolvedRun, saved["resolved"]), [Choice(**row) for row in saved["choices"]]
    resolved, choices = _choose(run, data)
    content = {
        "requested": requested,
        "resolved": to_dict(resolved),
        "choices": [to_dict(c) for c in choices],
    }
    write_file(file, json.dumps(content, indent=2) + "\n")
    return resolved, choices


def _refuse_changes(saved: dict[str, Any], requested: dict[str, Any], file: Path) -> None:
    old, new = _flat(saved), _flat(requested)
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if changed:
        key = changed[0]
        raise UserError(
            f"{file.parent.parent} holds a run with other settings: {key} was {old.get(key)!r} and is now "
            f"{new.get(key)!r}. Use the same command to continue it, or another --out for a new run"
        )


def _flat(data: dict[str, Any], where: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{where}.{key}" if where else key
        flat.update(_flat(value, name) if isinstance(value, dict) else {name: value})
    return flat


def _choose(run: RunConfig, data: PreparedTranslation) -> tuple[ResolvedRun, list[Choice]]:
    """Fill in what the user left open."""
    device = choose_device(run.settings.get("training", {}).get("machine", {}).get("device", "auto"))
    tokens = int(data.train.source_lengths.sum() + data.train.target_lengths.sum()) + 2 * len(data.train)
    preset = run.preset or choose_preset(tokens, device)
    filled = fill_in(preset, run.settings)
    model = replace(filled.model, vocabulary_size=data.tokenizer.vocabulary_size)
    training = _with_limit(filled.training, tokens)
    training = _with_machine(training, device)
    training = _with_batches(training, model, tokens)
    resolved = ResolvedRun(preset, model, training)
    return resolved, _describe(run, resolved, data, tokens)


def choose_preset(tokens: int, device: torch.device) -> str:
    """A model size that suits the amount of text and the machine."""
    if device.type != "cpu" and tokens >= 50_000_000:
        return "translation_big" if tokens >= 2_000_000_000 else "translation_base"
    return "translation_tiny" if tokens < 3_000_000 else "translation_small"


def _with_limit(training: TrainingConfig, tokens: int) -> TrainingConfig:
    """A run without limit has no end to decay to: it follows the inverse square root, and validates by steps."""
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
    threads = machine.threads or max(1, cores // workers)
    machine = MachineConfig(device.type, workers, threads, precision)  # type: ignore[arg-type]
    return replace(training, machine=machine)


def step_tokens(tokens: int) -> int:
    """Tokens of an optimizer step: small corpora need many small steps."""
    return max(1500, min(16_000, tokens // 240))


def _with_batches(training: TrainingConfig, model: EncoderDecoderConfig, tokens: int) -> TrainingConfig:
    per_step = training.batches.tokens_per_step or step_tokens(tokens)
    per_batch = training.batches.tokens_per_batch
    if per_batch is None:
        per_batch = min(per_step, tokens_that_fit(model, torch.device(training.machine.device)))
    batches = replace(training.batches, tokens_per_step=per_step, tokens_per_batch=min(per_batch, per_step))
    return replace(training, batches=batches)


def _describe(run: RunConfig, resolved: ResolvedRun, data: PreparedTranslation, tokens: int) -> list[Choice]:
    model, training = resolved.model, resolved.training
    encoder, decoder, machine = model.encoder, model.decoder, training.machine
    limit = training.limit
    ends = f"after {limit.steps} steps" if limit.steps else f"after {limit.epochs} epochs"
    if limit.budget:
        ends = f"after {limit.budget}"
    elif not (limit.steps or limit.epochs):
        ends = f"after {limit.patience} validations without improvement"
    given = "as asked"
    paper = PAPER_MILLIONS.get(resolved.preset, "")
    averaging = f"moving average, decay {training.ema_decay}" if training.ema_decay else "none"
    if training.average_checkpoints:
        averaging = f"mean of the last {training.average_checkpoints} checkpoints"
    every = f"{training.saving.validations} times"
    if training.saving.validate_every_steps:
        every = f"every {training.saving.validate_every_steps} steps"
    user_training = run.settings.get("training", {})
    batches = training.batches
    return [
        Choice("training pairs", f"{len(data.train):,}", f"{tokens:,} subwords"),
        Choice("held-out pairs", f"{len(data.valid):,}", "given files" if _has_valid(run) else "by content hash"),
        Choice("vocabulary", f"{model.vocabulary_size:,}", "joint byte-level BPE, by the amount of text"),
        Choice("preset", resolved.preset, given if run.preset else "by the amount of text and the device"),
        Choice(
            "model",
            f"{encoder.num_layers}+{decoder.num_layers} layers, width {model.width}, "
            f"{encoder.attention.num_heads} heads, dropout {encoder.dropout}",
            f"{encoder.norm}-norm, {model.positions} positions",
        ),
        Choice("parameters", f"{formula(model):,}", paper and f"the paper's Table 3 says {paper} million"),
        Choice(
            "device",
            f"{machine.device}, {machine.workers} x {machine.threads} threads, {machine.precision}",
            "by the machine",
        ),
        Choice(
            "tokens a step",
            f"{batches.tokens_per_step:,}",
            f"{batches.tokens_per_batch:,} at once"
            + (f", {given}" if user_training.get("batches") else ", by the amount of text and the memory"),
        ),
        Choice("learning rate", f"{training.schedule.learning_rate or 'of the paper'}", training.schedule.kind),
        Choice("averaging", averaging, "by the preset"),
        Choice("validation", every, f"saved every {training.saving.checkpoint_seconds:g} s too"),
        Choice("end", ends, given if user_training.get("limit") else "no limit was given"),
    ]


def _has_valid(run: RunConfig) -> bool:
    return bool(run.data.valid_source or run.data.valid_tsv)
