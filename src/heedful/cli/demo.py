"""`heedful demo`."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from heedful.errors import UserError
from heedful.storage import writing
from heedful.tasks.registry import all_tasks

DEMOS = {task.demo.name: task.demo for task in all_tasks().values() if task.demo}


WHICH = "\n".join(f"{demo.name:15} {demo.about}" for demo in DEMOS.values())
HELP = f"""Train and try a small model on built-in data, within two minutes, without network.

\b
{WHICH}

\b
heedful demo
heedful demo --to ja
heedful demo language-model
"""


@click.command(help=HELP)
@click.argument("what", type=click.Choice(list(DEMOS)), default="translation")
@click.option("--to", "language", metavar="CODE", help="The target language of the translation, by default de.")
@click.option("--out", metavar="FOLDER", help="Where the model goes; by default demo-WHAT, or demo-en-CODE.")
@click.option("--budget", metavar="TIME", help="Time for training; by default enough on two cores.")
@click.option("--seed", default=1, show_default=True, help="The seed of the generated data.")
def demo(what: str, language: str | None, out: str | None, budget: str | None, seed: int) -> None:
    """Train a model on built-in data, and show what it does."""
    from rich.console import Console

    from heedful.training.display import display_on_stderr

    if language and what != "translation":
        raise UserError(f"--to is for the translation demo: {what} has no target language")
    chosen = DEMOS[what]
    budget = budget or chosen.budget
    folder = out or (f"demo-en-{language or 'de'}" if what == "translation" else f"demo-{what}")
    with display_on_stderr() as display:
        if what == "translation":
            from heedful.tasks.translation.demo_corpus import check_language

            check_language(language or "de")
        module = importlib.import_module(chosen.module)
        display.message(f"{module.WHAT}; {budget} of training")
        arguments = (language or "de",) if what == "translation" else ()
        with writing(Path(folder)):
            result = module.run_demo(*arguments, Path(folder), budget, seed, display)
    module.show(Console(), result, folder)
    if not result.learned:
        click.echo(
            f"heedful: the model has not learned much: {budget} of training is too short on this machine, or while it "
            "is this busy. Give it more time with --budget",
            err=True,
        )
