"""Checkpoints: folders of safetensors and JSON, written under another name and then renamed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from heedful.files import TEMPORARY, flush_to_disk, save_tensors


def checkpoint_folders(folder: Path) -> list[Path]:
    """The complete checkpoints in a folder, oldest first."""
    return sorted(folder.glob("step-*")) if folder.is_dir() else []


def save_checkpoint(folder: Path, step: int, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any]) -> Path:
    """Write `tensors` (one file per name) and `state`; a kill at any moment leaves the older checkpoints whole."""
    final = folder / f"step-{step:09d}"
    temporary = folder / f"{TEMPORARY}{final.name}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, group in tensors.items():
        save_tensors(temporary / f"{name}.safetensors", group)
    (temporary / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
    for file in temporary.iterdir():
        flush_to_disk(file)
    replaced = folder / f"{TEMPORARY}replaced"
    if final.exists():  # the same step once more: at the end of a run, or continued from an older checkpoint
        shutil.rmtree(replaced, ignore_errors=True)
        final.rename(replaced)
    temporary.rename(final)
    shutil.rmtree(replaced, ignore_errors=True)
    return final


def load_checkpoint(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """What `save_checkpoint` wrote."""
    tensors = {file.stem: load_file(file) for file in sorted(path.glob("*.safetensors"))}
    state = json.loads((path / "state.json").read_text(encoding="utf-8"))
    return tensors, state


def prune_checkpoints(folder: Path, keep: set[int]) -> None:
    """Remove what a kill left half-written, and all checkpoints but the newest two and those of steps in `keep`."""
    for leftover in folder.glob(f"{TEMPORARY}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    for old in checkpoint_folders(folder)[:-2]:
        if int(old.name.removeprefix("step-")) not in keep:
            shutil.rmtree(old, ignore_errors=True)


def drop_checkpoint(folder: Path, step: int) -> None:
    """Remove the checkpoint of a step, if there is one."""
    shutil.rmtree(folder / f"step-{step:09d}", ignore_errors=True)
