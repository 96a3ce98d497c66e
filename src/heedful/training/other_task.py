"""A folder that holds a run of another task than the one that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.tasks.declaration import resolve
from heedful.tasks.job import Job
from heedful.tasks.registry import all_tasks


def refuse_other_task(family: str, model: Any, job: Job, out: Path) -> None:
    """Raise a UserError if the run in a folder, known by its model's family and settings, learns another task."""
    head = getattr(model, "head", None)  # encoders have one for each task
    kind = f"{type(job).__module__}:{type(job).__name__}"
    trained = [(task.families, task.training) for task in all_tasks().values() if task.training]
    asked = [training.command for _, training in trained if training.data == kind]
    # Only jobs of this family are imported: others may need what is not installed.
    held = [
        training.command
        for families, training in trained
        if family in families and getattr(resolve(training.data), "head", None) == head
    ]
    if held and asked and asked[0] not in held:
        raise UserError(f"{out} holds {_named(held[0])}, and this is {_named(asked[0])}: choose another --out")


def _named(command: str) -> str:
    """The model that a command trains."""
    name = command.replace("-", " ")
    name = name if name.endswith(("er", "model")) else f"{name} model"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
