"""`heedful export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from heedful.interop.ctranslate2_export import Quantization


@click.command()
@click.argument("model")
@click.option("--to", "format_", type=click.Choice(["ctranslate2"]), required=True, help="The format to make.")
@click.argument("out")
@click.option(
    "--quantization",
    type=click.Choice(["float32", "int8"]),
    default="float32",
    show_default=True,
    help="How weights are stored and used.",
)
def export(model: str, format_: str, out: str, quantization: Quantization) -> None:
    """Make a folder for CTranslate2 from a translation model.

    OUT gets the weights, the vocabulary, and a copy of tokenizer.json, which splits texts into tokens. Before that,
    both models score and translate sentences; if they disagree, nothing is left behind.

    \b
    heedful export en-de --to ctranslate2 en-de-ct2
    """
    from heedful.interop.ctranslate2_export import SENTENCES, export_folder

    found = export_folder(Path(model), Path(out), quantization)
    click.echo(
        f"done: {out}; of {SENTENCES} made-up sentences, {found.same_greedy} greedy and {found.same_beam} beam-5 "
        f"translations are those of heedful; log-probabilities differ by at most {100 * max(found.differences):.2g} %",
        err=True,
    )
