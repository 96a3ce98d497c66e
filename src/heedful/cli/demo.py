"""`heedful demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from heedful.demo import DemoResult

SHOWN_EXAMPLES = 8
SHADES = " ░▒▓█"


@click.command()
@click.option(
    "--to", "language", default="de", show_default=True, metavar="CODE", help="Target language: de, fr, es, ja ..."
)
@click.option("--out", metavar="FOLDER", help="Where the model goes; by default demo-en-CODE.")
@click.option("--budget", default="90s", show_default=True, metavar="TIME", help="Time for training.")
@click.option("--seed", default=1, show_default=True, help="Of the generated phrases.")
def demo(language: str, out: str | None, budget: str, seed: int) -> None:
    """Train and try a small translation model on built-in data, within two minutes.

    The phrases (dates, times, amounts, units, lists of countries and languages) are generated from the Unicode
    CLDR, and need no network.

    \b
    heedful demo
    heedful demo --to ja
    """
    from rich.console import Console

    from heedful.data.demo_corpus import check_language
    from heedful.training.display import display_on_stderr

    check_language(language)
    folder = out or f"demo-en-{language}"
    with display_on_stderr() as display:
        display.message(f"English to {language}: phrases generated from the Unicode CLDR; {budget} of training")
        from heedful.demo import run_demo

        result = run_demo(language, Path(folder), budget, seed, display)
    show(Console(), result, folder)


def show(console: Console, result: DemoResult, folder: str) -> None:
    """The table of unseen examples, the scores, the attention picture, and what to try next."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title="phrases that were not in the training data", title_justify="left")
    for column in ("English", "translation", "reference", ""):
        table.add_column(column, overflow="fold")
    for example in result.examples[:SHOWN_EXAMPLES]:
        right = example.translation == example.reference
        mark = Text("=", style="green") if right else Text("≠", style="red")
        table.add_row(Text(example.source), Text(example.translation), Text(example.reference), mark)
    console.print(table)
    count = len(result.examples)
    console.print(
        f"exact matches: {result.exact:.1%} of {count} unseen phrases; BLEU {result.bleu:.1f}\n", highlight=False
    )
    _attention(console, result)
    console.print(
        Text(f"""next:
  echo 'March 3, 2031' | heedful translate {folder}
  heedful translate {folder} --nbest 3 --scores --alignment
  heedful info {folder}
  heedful demo --to fr
  heedful train translation --source your.en --target your.de --out en-de"""),
        soft_wrap=True,
    )


def _attention(console: Console, result: DemoResult) -> None:
    """Cross-attention of one example of middle length as shades."""
    from rich.table import Table
    from rich.text import Text

    from heedful.demo import attention_picture

    fitting = [each for each in result.examples if 4 <= len(each.source.split()) <= 7]
    example = (fitting or result.examples)[0]
    sources, targets, weights = attention_picture(result.translator, example.source, example.translation)
    table = Table(
        title="what each output word attended to (mean of all heads and layers)", title_justify="left", box=None
    )
    table.add_column("")
    for word in sources:
        table.add_column(Text(word), justify="center")
    for word, row in zip(targets, weights, strict=True):
        shades = [SHADES[min(len(SHADES) - 1, round(weight * (len(SHADES) - 1)))] * 3 for weight in row]
        table.add_row(Text(word), *(Text(shade) for shade in shades))
    console.print(table)
    console.print()
