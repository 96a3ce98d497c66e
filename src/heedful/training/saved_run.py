"""The choices of a run on disk: made once, saved in run/config.json, and used again when the run is continued."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.config import from_dict, read_json, to_dict
from heedful.errors import UserError
from heedful.files import write_file
from heedful.machine.devices import choose_device
from heedful.model_folder import ModelConfig
from heedful.settings.families import FAMILY_SETTINGS
from heedful.tasks.job import Choice, PreparedJob
from heedful.training.description import describe, describe_extension
from heedful.training.extension import Extension, check_extension
from heedful.training.identity import refuse_changes, requested, with_saved_names
from heedful.training.resolve import ResolvedRun, choose, fill_in
from heedful.training.run_config import RunConfig


@dataclass(frozen=True)
class SavedRun:
    """What run/config.json holds: the choices of a run, how they came about, and the key of its data.

    `extension` tells where the run was extended last, if it was.
    """

    resolved: ResolvedRun
    choices: tuple[Choice, ...]
    data_key: str
    extension: Extension | None = None


def new_run(run: RunConfig, data: PreparedJob) -> SavedRun:
    """A run that begins: its choices, made and described."""
    resolved = choose(run, data)
    return SavedRun(resolved, (*data.choices(), *describe(run, resolved)), data.key)


def reload_run(run: RunConfig, file: Path) -> tuple[RunConfig, SavedRun] | None:
    """The run that is to be continued, if there is one that was asked for in the same words, and its saved choices."""
    if not file.exists():
        return None
    content, out = read_json(file), file.parent.parent
    try:
        saved = from_dict(SavedRun, content["saved"])
        resolved = saved.resolved
        resolved = replace(resolved, model=from_dict(FAMILY_SETTINGS[resolved.family], resolved.model))
        asked = {**content["requested"]}
        run = replace(run, data=with_saved_names(run.data, asked))
    except (UserError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} is damaged, or of another version of heedful ({error}): "
            "put back a copy, or begin in another folder"
        ) from None
    refuse_changes(asked, requested(run), run.data, out)
    choose_device(resolved.training.machine.device)  # it must be here too
    saved = replace(saved, resolved=resolved)
    limit = fill_in(resolved.preset, run.settings).training.limit
    if limit != resolved.training.limit:
        extension = check_extension(resolved.training.limit, limit, run.extend, out)
        training = replace(resolved.training, limit=limit)
        choices = describe_extension(saved.choices, training, extension)
        saved = replace(saved, resolved=replace(resolved, training=training), choices=choices, extension=extension)
    return run, saved


def save_run(run: RunConfig, saved: SavedRun, config: ModelConfig, file: Path) -> None:
    """Write what was asked for, with what the names of files told, and every choice."""
    asked = requested(run)
    asked["data"] |= {name: getattr(config, name) for name in run.data.read_from_names}
    write_file(file, json.dumps({"requested": asked, "saved": to_dict(saved)}, indent=2) + "\n")
