"""Continuing after damage: the newest intact checkpoint is used, and damaged ones are reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.files import checkpoint_folders, checkpoint_step
from heedful.models.weights_file import load_parameters
from heedful.training.averaging import MovingAverage
from heedful.training.checkpoint import DamagedCheckpointError, load_checkpoint
from heedful.training.metrics import MetricsFile
from heedful.training.optimizer import KEPT, restore_optimizer
from heedful.training.run_state import RunState


def restore_newest(
    folder: Path, metrics: MetricsFile, restore: Callable[[Path], RunState], tell: Callable[[str], None]
) -> RunState | None:
    """Restore the newest checkpoint of a folder that can be used, and the metrics up to it; None if there is none.

    A checkpoint before the damage in the metrics is better than a newer one: what is missing is done again.
    """
    found = checkpoint_folders(folder)[::-1]
    problems: dict[Path, str] = {}
    without_metrics: list[Path] = []
    for path in found:
        try:
            state = restore(path)
        except DamagedCheckpointError as damage:
            problems[path] = f"the checkpoint {path} is damaged ({damage})"
            continue
        if metrics.agrees(state.position.step, state.metrics):
            _tell_of(problems, path, tell)
            metrics.truncate(state.position.step, state.metrics)
            return state
        problems[path] = f"{metrics.path} is damaged in what it holds up to {path.name}"
        without_metrics.append(path)
    if without_metrics:
        path = without_metrics[0]
        state = restore(path)
        missing = metrics.truncate(state.position.step, state.metrics)
        del problems[path]
        _tell_of(problems, path, tell)
        tell(
            f"{metrics.path} is damaged, and no checkpoint is from before that: continuing from {path.name} without "
            f"the lines that cannot be read, at least {missing}"
        )
        return state
    if found:
        first = next(iter(problems.values()))
        raise UserError(
            f"{first}"
            + (f", and so are the other {len(found) - 1} in {folder}" if len(found) > 1 else ", and there is no other")
            + f": put back a copy, or delete {folder} and give the same command to start from the beginning"
        )
    metrics.truncate(0)
    return None


def _tell_of(problems: dict[Path, str], used: Path, tell: Callable[[str], None]) -> None:
    for problem in list(problems.values()):
        tell(f"{problem}: continuing from {used.name}")


def restore_checkpoint(
    path: Path, model: nn.Module, optimizer: torch.optim.AdamW, average: MovingAverage | None
) -> RunState:
    """Restore the tensors of a checkpoint, and return its state; a DamagedCheckpointError if they cannot be used."""
    tensors, state = checkpoint_tensors(path, dict(model.named_parameters()), average is not None)
    try:
        load_parameters(model, tensors["model"])
        restore_optimizer(model, optimizer, tensors["optimizer"])
        if average:
            average.restore(tensors["average"])
    except (UserError, KeyError) as error:
        raise DamagedCheckpointError(str(error)) from None
    return state


def checkpoint_tensors(
    path: Path, parameters: dict[str, nn.Parameter], averaged: bool
) -> tuple[dict[str, dict[str, Tensor]], RunState]:
    """The tensors of a checkpoint and its state; a DamagedCheckpointError if they do not fit these parameters."""
    tensors, data = load_checkpoint(path)
    shapes = {f"{group}/{name}": tensor.shape for group, named in tensors.items() for name, tensor in named.items()}
    state = check_contents(path, data, shapes, parameters, averaged)
    return {"optimizer": {}, **tensors}, state


def check_contents(
    path: Path,
    data: dict[str, Any],
    shapes: Mapping[str, Sequence[int]],
    parameters: Mapping[str, nn.Parameter],
    averaged: bool,
) -> RunState:
    """The state of a checkpoint, if its tensors, by group and name, fit these parameters."""
    state = _state(data, path)
    groups = {name.partition("/")[0] for name in shapes}
    needed = ["model", *(["optimizer"] if state.position.step else []), *(["average"] if averaged else [])]
    for group in needed:
        if group not in groups:
            raise DamagedCheckpointError(f"the tensors of the {group} are missing")
    for group in ("model", *(["average"] if averaged else [])):
        missing = [name for name in parameters if f"{group}/{name}" not in shapes]
        if missing:
            raise DamagedCheckpointError(f"the {group} does not have {missing[0]}")
    for name, shape in shapes.items():
        group, _, rest = name.partition("/")
        parameter_name, _, kept = rest.partition("/")
        parameter = parameters.get(parameter_name)
        if parameter is None or tuple(shape) != (() if kept == "step" else tuple(parameter.shape)):
            raise DamagedCheckpointError(f"the {group} does not fit the model: {rest}")
        missing = [each for each in KEPT if kept and f"{group}/{parameter_name}/{each}" not in shapes]
        if missing:
            raise DamagedCheckpointError(f"the {group} does not have {parameter_name}/{missing[0]}")
    return state


def _state(data: dict[str, Any], path: Path) -> RunState:
    try:
        state = RunState.from_dict(data)
    except UserError:  # of another version
        raise
    except ValueError as error:
        raise DamagedCheckpointError(f"state.json: {error}") from None
    if state.position.step != checkpoint_step(path):
        raise DamagedCheckpointError(f"state.json is of step {state.position.step}")
    return state
