"""The choices of a run on disk: made once, saved in run/config.json, and used again when the run is continued."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.config import from_dict, read_json, to_dict
from heedful.errors import UserError
from heedful.files import write_file
from heedful.machine.devices import choose_device
from heedful.model_folder import ModelConfig
from heedful.settings.families import FAMILY_SETTINGS
from heedful.tasks.job import Choice, PreparedJob
from heedful.training.description import describe, describe_extension, with_layout
from heedful.training.extension import Extension, check_extension, same_end
from heedful.training.identity import refuse_changes, requested, with_saved_names
from heedful.training.other_task import refuse_other_task
from heedful.training.parallel.layout import choose_layout
from heedful.training.resolve import ResolvedRun, check_parts, choose, fill_in
from heedful.training.run_config import RunConfig


@dataclass(frozen=True)
class SavedRun:
    """What run/config.json holds: the choices of a run, how they came about, and the key of its data.

    `extension` says where the run was last extended, if it was.
    """

    resolved: ResolvedRun
    choices: tuple[Choice, ...]
    data_key: str
    extension: Extension | None = None


def new_run(run: RunConfig, data: PreparedJob, processes: int = 1) -> SavedRun:
    """A new run of this many processes: its choices, made and described."""
    resolved = choose(run, data, processes)
    return SavedRun(resolved, (*data.choices(), *describe(run, resolved)), data.key)


def reload_run(run: RunConfig, file: Path, processes: int = 1) -> tuple[RunConfig, SavedRun] | None:
    """The run to be continued, if there is one, and its saved choices; another request is refused.

    It may continue with another number of processes, and another layout.
    """
    found = begun_run(run, file)
    if found is None:
        return None
    (run, saved), out = found, file.parent.parent
    resolved = saved.resolved
    choose_device(resolved.training.machine.device)  # it must be here too
    asked_for = fill_in(resolved.preset, run.settings).training
    limit, training = asked_for.limit, resolved.training
    layout = choose_layout(asked_for.parallel, processes, training.machine.device, training.parallel)
    resolved = replace(resolved, training=replace(training, parallel=layout))
    check_parts(resolved.training, evenly=False)
    saved = replace(saved, resolved=resolved, choices=with_layout(saved.choices, resolved.training))
    if not same_end(resolved.training.limit, limit):
        extension = check_extension(resolved.training.limit, limit, run.extend, out)
        training = replace(resolved.training, limit=limit)
        choices = describe_extension(saved.choices, training, extension)
        saved = replace(saved, resolved=replace(resolved, training=training), choices=choices, extension=extension)
    return run, saved


def begun_run(run: RunConfig, file: Path) -> tuple[RunConfig, SavedRun] | None:
    """The run that has begun, if there is one, and its choices as they were made; another request is refused."""
    if not file.exists():
        return None
    out = file.parent.parent
    try:
        content = read_json(file)
        saved = _saved_of(content)
        asked = {**content["requested"]}
        run = replace(run, data=with_saved_names(run.data, asked))
    except (UserError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} is damaged, or of another version of heedful ({error}): "
            "put back a copy, remove it to have the choices made again, or start in another folder"
        ) from None
    refuse_other_task(saved.resolved.family, saved.resolved.model, run.data, out)
    refuse_changes(asked, requested(run), run.data, out)
    return run, saved


def _saved_of(content: dict[str, Any]) -> SavedRun:
    saved = from_dict(SavedRun, content["saved"])
    model = from_dict(FAMILY_SETTINGS[saved.resolved.family], saved.resolved.model)
    return replace(saved, resolved=replace(saved.resolved, model=model))


def run_in_words(run: RunConfig, saved: SavedRun) -> str:
    """A run's choices as text, for its other processes."""
    return json.dumps({"requested": requested(run), "saved": to_dict(saved)})


def run_of_words(run: RunConfig, text: str) -> tuple[RunConfig, SavedRun]:
    """The run and its choices, as the first process reports them."""
    content = json.loads(text)
    return replace(run, data=with_saved_names(run.data, content["requested"])), _saved_of(content)


def save_run(run: RunConfig, saved: SavedRun, config: ModelConfig, file: Path) -> None:
    """Write what was asked for, with what the names of files said, and every choice."""
    asked = requested(run)
    asked["data"] |= {name: getattr(config, name) for name in run.data.read_from_names}
    write_file(file, json.dumps({"requested": asked, "saved": to_dict(saved)}, indent=2) + "\n")
