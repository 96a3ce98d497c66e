"""`heedful prepare`: the data of a run, prepared where no GPU waits for it."""

from __future__ import annotations

import os
import shlex
import sys

import click

from heedful.cli.train import command_of, requested_run
from heedful.cli.usage_errors import Commands
from heedful.errors import UserError
from heedful.machine.torch_needed import needs_torch
from heedful.tasks.declaration import Options, Training, resolve
from heedful.tasks.registry import all_tasks

EPILOG = (
    "The options are those of `heedful train`. The same command with `train` then starts at once, in any number of "
    "processes; options about training itself, such as --steps or --device, change nothing here. Prepared data "
    "is not prepared again. An interrupted preparation leaves nothing half done; the same command starts it again."
)


@click.group(cls=Commands)
def prepare() -> None:
    """Prepare the data of a training run, for example on a machine without GPUs.

    \b
    heedful prepare translation --source train.en --target train.de --out en-de
    torchrun --nproc-per-node=8 -m heedful train translation --source train.en --target train.de --out en-de
    """


@needs_torch("preparing the data of a training")
def prepare_data(training: Training, options: Options) -> None:
    """Prepare, and say what is there and what to do next."""
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise UserError("heedful prepare works in one process: start it by itself, without torchrun")
    run_config = requested_run(resolve(training.data), options)
    from heedful.training.display import RunDisplay, display_on_stderr
    from heedful.training.preparation import prepare as prepare_run

    display: RunDisplay = display_on_stderr()
    with display:
        done = prepare_run(run_config, display)
    for choice in done.data.choices():
        click.echo(f"{choice.name}: {choice.value}{f' ({choice.reason})' if choice.reason else ''}", err=True)
    how = "was prepared already" if done.was_there else "is prepared"
    click.echo(f"done: the data {how}: {done.folder} ({done.size / 1e6:,.1f} MB)", err=True)
    click.echo(f"next: {shlex.join(['heedful', 'train', *sys.argv[2:]])}", err=True)


def help_of(training: Training) -> str:
    """The help of a command: the examples of the training, with the other verb."""
    examples = training.help.partition("\b")[2].replace("heedful train", "heedful prepare")
    return f"Prepare what `heedful train {training.command}` reads.\n\n    \b{examples}"


for each in all_tasks().values():
    if each.training:
        prepare.add_command(command_of(each.training, prepare_data, help_of(each.training), EPILOG))
