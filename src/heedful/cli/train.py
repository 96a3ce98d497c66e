"""`heedful train`: one command for each task that can be learned."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from heedful.cli.given_twice import refuse_given_twice
from heedful.cli.options import DEVICE, with_options
from heedful.cli.usage_errors import Commands
from heedful.config import merge, nested, parse_assignment, read_toml
from heedful.errors import LostProcessError, UserError
from heedful.machine.cores import available_cores
from heedful.machine.torch_needed import needs_torch
from heedful.tasks.declaration import Option, Options, Training, resolve
from heedful.tasks.registry import all_tasks
from heedful.training.parallel.launcher import end_with_launcher, run_processes

# More processes than this on one machine are a slip, which would take all of its memory.
FEWEST_ALLOWED, PROCESSES_PER_CORE = 64, 8
# The options that give settings of a run, besides those on its data.
OWN = {
    "steps": "training.limit.steps",
    "epochs": "training.limit.epochs",
    "budget": "training.limit.budget",
    "device": "training.machine.device",
    "out": "out",
    "preset": "preset",
}
# Options that every command of `heedful train` has.
SHARED = (
    Option(("--out",), "Where the model goes.", "FOLDER"),
    Option(("--preset",), "A model size; by default chosen to suit the data and the machine.", "NAME"),
    Option(("--steps",), "End after this many steps.", None, kind=int),
    Option(("--epochs",), "End after this many passes over the data.", None, kind=int),
    Option(("--budget",), "End after this time, such as 30m or 1h30m, with a finished schedule.", "TIME"),
    Option(
        ("--extend",),
        "Extend a finished run: give the same command with a larger limit.",
        None,
        is_flag=True,
    ),
    DEVICE,
    Option(("--processes",), "Train in this many processes on this machine.", None, kind=int),
    Option(("--config", "config_file"), "Settings as TOML, with the tables data, model and training."),
    Option(
        ("--set", "assignments"),
        "One setting, such as training.seed=3 or model.width=256.",
        "NAME=VALUE",
        multiple=True,
    ),
)


@click.group(cls=Commands)
def train() -> None:
    """Train a model from your own files.

    \b
    heedful train translation --source train.en --target train.de --out en-de
    heedful train language-model --text book.txt --out my-gpt
    """


def command_of(training: Training, work: Callable[[Training, Options], None], text: str, epilog: str) -> click.Command:
    """A command on the data of a task, with the options that all have."""

    def run(**options: Any) -> None:
        work(training, options)

    command = with_options((*SHARED, *training.options))(run)
    return click.command(training.command, help=text, epilog=epilog)(command)


@needs_torch("training")
def run_job(training: Training, options: dict[str, Any]) -> None:
    """Train, and say what to do next."""
    end_with_launcher()  # before anything that takes long
    count = options["processes"]
    if count is not None:
        _check_processes(count)
    run_config = requested_run(resolve(training.data), options)
    if count is not None:
        _start_processes(count)
    told_to = sys.stderr
    if not _leads():
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the rest of the process
    from heedful.inspection.run.diagnosis import diagnose
    from heedful.inspection.run.run_record import read_run
    from heedful.training.display import RunDisplay, display_on_stderr
    from heedful.training.run import train as run_training

    display: RunDisplay = display_on_stderr()
    try:
        with display:
            result = run_training(run_config, display)
    except LostProcessError as error:
        if error.first or _leads():  # the leading process may be the one that hangs, or notice too late to say so
            print(f"heedful: {error}", file=told_to, flush=True)
        os._exit(2)  # threads that wait for the lost process cannot be ended, and may abort Python as it ends itself
    folder = result.folder
    if not result.finished:
        click.echo(f"stopped and saved in {folder}: the same command continues", err=True)
        sys.exit(130)
    record = read_run(folder)
    click.echo(f"done: {folder} ({record.best_in_words})", err=True)
    for finding in diagnose(record):
        click.echo(f"{'warning' if finding.fault else 'note'}: {finding}", err=True)
    click.echo(f"next: {training.usage.format(folder)}", err=True)


def _check_processes(count: int) -> None:
    """Raise a UserError for a number of processes that makes no sense."""
    most = max(FEWEST_ALLOWED, PROCESSES_PER_CORE * available_cores())
    if not 1 <= count <= most:
        raise UserError(f"--processes is {count:,}, but must be between 1 and {most:,} on this machine")


def _start_processes(count: int) -> None:
    """Start the processes that were asked for and end with them, unless this is one of them."""
    if "RANK" in os.environ:
        started = os.environ.get("WORLD_SIZE")
        if started != str(count):
            raise UserError(f"--processes is {count}, but torchrun has started {started}: leave --processes out")
        return
    sys.exit(run_processes(count, sys.argv[1:]))


def _leads() -> bool:
    """Whether this is the one of several processes that speaks for all."""
    return os.environ.get("RANK", "0") == "0"


def requested_run(job_data: type[Any], options: dict[str, Any]) -> Any:
    """The run that the command line and its settings file ask for; the command line wins."""
    from heedful.config import from_dict
    from heedful.training.run_config import RunConfig

    settings: dict[str, Any] = {}
    if options["config_file"]:
        settings = read_toml(Path(options["config_file"]))
    assigned: dict[str, Any] = {}
    for assignment in options["assignments"]:
        assigned = merge(assigned, parse_assignment(assignment))
    settings = merge(settings, assigned)
    fields = _given(job_data, options)
    direct = [name for name in OWN if options[name] is not None]
    refuse_given_twice(
        assigned, {**{OWN[name]: name for name in direct}, **{f"data.{name}": name for name in fields}}, options
    )
    for name in direct:
        settings = merge(settings, nested(OWN[name], options[name]))
    given = {name: list(options[name]) if isinstance(options[name], tuple) else options[name] for name in fields}
    file_data, out, preset = (settings.pop(name, None) for name in ("data", "out", "preset"))
    from_dict(job_data, file_data or {}, "data")  # its own mistakes first
    data = from_dict(job_data, merge(file_data or {}, given), "data")
    for name, value in (("out", out), ("preset", preset)):
        if value is not None and not isinstance(value, str):
            raise UserError(f"setting {name!r} is {value!r}, expected a text in quotes")
    if not out:
        raise UserError("--out FOLDER is missing: where is the model to go?")
    return RunConfig(out, data, preset, settings, options.get("family"), options["extend"])


def _given(job_data: type[Any], options: dict[str, Any]) -> list[str]:
    """The fields of the job's data that options give; an empty list of files gives none.

    A flag that is off counts as not given, unless it is one that can be given either way.
    """
    fields = job_data.__dataclass_fields__
    return [
        name
        for name in fields
        if options.get(name) not in (None, ()) and not (options[name] is False and fields[name].default is False)
    ]


EPILOG = "Ctrl-C saves and ends the run; the same command continues it."
for each in all_tasks().values():
    if each.training:
        train.add_command(command_of(each.training, run_job, each.training.help, EPILOG))
