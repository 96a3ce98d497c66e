"""`heedful inspect`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder")
@click.option("--training", is_flag=True, required=True, help="Draw how the model was trained.")
@click.option("--out", default="training.html", metavar="FILE", help="Where the page goes.")
def inspect(folder: str, training: bool, out: str) -> None:
    """Look into a training run.

    \b
    heedful inspect en-de --training --out training.html
    """
    from heedful.inspection.training import training_page

    Path(out).write_text(training_page(Path(folder)), encoding="utf-8", newline="\n")
    click.echo(f"wrote {out}", err=True)
