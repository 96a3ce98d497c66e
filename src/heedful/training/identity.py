"""What makes a command the continuation of a run: the same settings, the same data, the same model to start from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.config import to_dict
from heedful.errors import UserError
from heedful.tasks.job import Job
from heedful.tasks.starting_model import content_digest
from heedful.training.run_config import RunConfig

# What may change when a run is continued: its end, and how it is spread over processes.
OPEN = ("settings.training.limit.", "settings.training.parallel.")
ANOTHER = "or choose another --out for a new run"


def requested(run: RunConfig) -> dict[str, Any]:
    """What was asked for, as plain data, with a digest of the contents of the model to start from, if any."""
    start = run.data.start_folder
    content = {
        "data": to_dict(run.data),
        "start": content_digest(Path(start)) if start else None,
        "preset": run.preset,
        "family": run.family,
        "settings": run.settings,
    }
    # Through JSON, as it will come back from the file.
    return json.loads(json.dumps(content))


def with_saved_names(job: Job, saved: dict[str, Any]) -> Job:
    """The job with what the names of its files said when the run began: they may have other names now."""
    told = {name: saved["data"].get(name) for name in job.read_from_names if getattr(job, name) is None}
    return replace(job, **told)  # type: ignore[type-var]


def refuse_changes(saved: dict[str, Any], asked: dict[str, Any], job: Job, out: Path) -> None:
    """Raise a UserError if this request differs from the saved one, apart from file names, limit and layout.

    The contents of the files are compared when they are read.
    """
    if "start" in saved and saved["start"] != asked["start"]:
        if saved["start"] and asked["start"]:
            what = f"{job.start_folder} is not the model that the run in {out} started from: give that one with --from"
        elif saved["start"]:
            what = f"the run in {out} started from a model: give it with --from as before"
        else:
            what = f"the run in {out} started from random weights: leave --from out"
        raise UserError(f"{what} to continue it, {ANOTHER}")
    old, new = flat(saved), flat(asked)
    apart = ("start", *(f"data.{name}" for name in job.files))
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key) and key not in apart and not key.startswith(OPEN):
            raise UserError(
                f"{out} holds a run with other settings: {key} was {old.get(key)!r} and is now {new.get(key)!r}. "
                "Use the same command to continue it, or another --out for a new run"
            )


def flat(data: dict[str, Any], where: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{where}.{key}" if where else key
        found.update(flat(value, name) if isinstance(value, dict) else {name: value})
    return found
