"""`heedful demo`."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from heedful.errors import UserError
from heedful.storage import writing

# What is shown -> the module of package `demo`, and the time that its training takes.
DEMOS = {
    "translation": ("translation", "90s"),
    "language-model": ("language_modeling", "75s"),
    "classifier": ("labelling", "60s"),
    "vision": ("image_classification", "60s"),
}


@click.command()
@click.argument("what", type=click.Choice(list(DEMOS)), default="translation")
@click.option("--to", "language", metavar="CODE", help="The target language of the translation, by default de.")
@click.option("--out", metavar="FOLDER", help="Where the model goes; by default demo-WHAT, or demo-en-CODE.")
@click.option("--budget", metavar="TIME", help="Time for training; by default what suits two cores.")
@click.option("--seed", default=1, show_default=True, help="Of the generated data.")
def demo(what: str, language: str | None, out: str | None, budget: str | None, seed: int) -> None:
    """Train and try a small model on built-in data, within two minutes, without network.

    \b
    translation     dates, amounts, units and lists, generated from the Unicode CLDR
    language-model  the Python language reference, which comes with Python
    classifier      which language is a phrase in? phrases generated from the Unicode CLDR
    vision          what does an image show? simple shapes, drawn on the spot

    \b
    heedful demo
    heedful demo --to ja
    heedful demo language-model
    """
    from rich.console import Console

    from heedful.training.display import display_on_stderr

    if language and what != "translation":
        raise UserError(f"--to is for the translation demo: {what} has no target language")
    name, usual = DEMOS[what]
    budget = budget or usual
    folder = out or (f"demo-en-{language or 'de'}" if what == "translation" else f"demo-{what}")
    with display_on_stderr() as display:
        if what == "translation":
            from heedful.tasks.translation.demo_corpus import check_language

            check_language(language or "de")
        module = importlib.import_module(f"heedful.tasks.{name}.demo")
        display.message(f"{module.WHAT}; {budget} of training")
        arguments = (language or "de",) if what == "translation" else ()
        with writing(Path(folder)):
            result = module.run_demo(*arguments, Path(folder), budget, seed, display)
    module.show(Console(), result, folder)
