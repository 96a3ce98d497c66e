"""`heedful score`."""

from __future__ import annotations

import click


@click.command()
@click.argument("model")
@click.option("--source", required=True, metavar="FILE", help="Source text.")
@click.option("--target", required=True, metavar="FILE", help="Its translation, line by line.")
@click.option(
    "--length-penalty",
    type=float,
    default=0.0,
    show_default=True,
    help="Divide by the length penalty of this alpha, as `heedful translate --scores` does with 0.6.",
)
@click.option("--tokens", is_flag=True, help="Add a column with the log-probability of each subword and of the end.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
def score(model: str, source: str, target: str, length_penalty: float, tokens: bool, device: str) -> None:
    """Give the log-probability of given translations, one line for each pair.

    \b
    heedful score en-de --source test.en --target test.de
    heedful score en-de --source test.en --target test.de --length-penalty 0.6
    """
    from heedful.cli.files import read_aligned
    from heedful.pipelines.loading import load_translator

    translator = load_translator(model, device)
    for result in translator.score(*read_aligned(source, target), length_penalty=length_penalty):
        columns = [f"{result.score:.6f}"]
        if tokens:
            columns.append(" ".join(f"{each:.4f}" for each in result.token_scores))
        click.echo("\t".join(columns))
