"""Extending a run that has finished to a later end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import read_json
from heedful.errors import UserError
from heedful.training.checkpoint import checkpoint_folders
from heedful.training.config import LimitConfig, seconds
from heedful.training.limits import in_minutes

KINDS = ("steps", "epochs", "budget")


@dataclass(frozen=True)
class Extension:
    """Where a run had finished when it was extended."""

    step: int


def end_in_words(limit: LimitConfig) -> str:
    """When a run with that limit ends."""
    if limit.steps or limit.epochs:
        count, unit = (limit.steps, "step") if limit.steps else (limit.epochs, "epoch")
        return f"after {count:,} {unit}{'s' * (count != 1)}"
    if limit.budget:
        return f"after {limit.budget}"
    return f"after {limit.patience} validations without improvement"


def same_end(before: LimitConfig, now: LimitConfig) -> bool:
    """Whether two limits end a run at the same point: patience does not count beside another limit."""
    return _end(before) == _end(now)


def _end(limit: LimitConfig) -> tuple[str, float]:
    """The kind of limit that ends a run, and how far it lets the run go."""
    kind = next((name for name in KINDS if getattr(limit, name) is not None), "patience")
    value = getattr(limit, kind)
    return kind, seconds(value) if kind == "budget" else value


def check_extension(before: LimitConfig, now: LimitConfig, wanted: bool, out: Path) -> Extension:
    """Where the run in a folder is extended from; a UserError if it cannot be, or if that was not asked for."""
    ends, another = end_in_words(before), "or choose another --out for a new run"
    (old_kind, old), (kind, new) = _end(before), _end(now)
    name = old_kind if kind == "patience" else kind  # patience has a value even where it does not count
    changed = f"training.limit.{name} was {getattr(before, name)!r} and is now {getattr(now, name)!r}"
    state = _newest_state(out)
    if not state.get("finished"):
        raise UserError(
            f"{out} holds a run that ends {ends} and has not got there yet: {changed}. Use the same command to "
            f"continue it (once it has finished, --extend takes it further), {another}"
        )
    if kind != old_kind:
        raise UserError(
            f"{out} holds a run that ended {ends}: {changed}. It can be extended by a larger {old_kind} only, {another}"
        )
    if new <= old:
        raise UserError(
            f"{out} holds a run that ended {ends}: {changed}, which is less. "
            f"Give a larger {kind} to extend it, {another}"
        )
    taken, reserve = state.get("elapsed", 0.0), state.get("reserve", 0.0)
    if kind == "budget" and new <= taken + reserve:
        raise UserError(
            f"{out} holds a run that ended {ends}: {changed}, which leaves no time to train: the run has taken "
            f"{in_minutes(taken)}, and another validation needs {in_minutes(reserve)}. "
            f"Give a budget of well over {math.ceil(taken + reserve)}s to extend it, {another}"
        )
    if not wanted:
        raise UserError(
            f"{out} holds a run that ended {ends}: {changed}. Add --extend to go on to the later end, {another}"
        )
    return Extension(int(state["position"]["step"]))


def _newest_state(out: Path) -> dict[str, Any]:
    """The state of the newest checkpoint of a run, if there is one."""
    found = checkpoint_folders(out / "run" / "checkpoints")
    return read_json(found[-1] / "state.json") if found else {}
