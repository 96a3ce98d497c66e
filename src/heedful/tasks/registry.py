"""All tasks: a new one is a folder with an `about.py`, and its name in this list."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from heedful.tasks.declaration import TaskDeclaration, Verb, resolve

FOLDERS = (
    "translation",
    "language_modeling",
    "encoding",
    "masked_modeling",
    "labelling",
    "image_classification",
)


@cache
def all_tasks() -> Mapping[str, TaskDeclaration]:
    """Name in config.json -> the task, in the order in which they are shown."""
    found = [task for folder in FOLDERS for task in resolve(f"heedful.tasks.{folder}.about:TASKS")]
    return {task.name: task for task in found}


@cache
def all_verbs() -> Mapping[str, Verb]:
    """Name -> verb, of all tasks."""
    return {verb.name: verb for task in all_tasks().values() for verb in task.verbs}
