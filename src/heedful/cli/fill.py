"""`heedful fill`."""

from __future__ import annotations

import json
from dataclasses import asdict

import click


@click.command()
@click.argument("model")
@click.argument("text")
@click.option("--top", type=int, default=5, show_default=True, help="Words for each mask, the likeliest first.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON array a mask.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
def fill(model: str, text: str, top: int, as_json: bool, device: str) -> None:
    """Guess the words behind each [MASK] of a text: a line with word, tab, probability for each guess.

    The guesses for several masks are separated by blank lines.

    \b
    heedful fill my-bert "The [MASK] barks."
    """
    from heedful.cli.lines import load_as
    from heedful.pipelines.masked_language_model import MaskedLanguageModel

    pipeline: MaskedLanguageModel = load_as(MaskedLanguageModel, model, device, "masked language model")
    found = pipeline.fill(text, top)
    if as_json:
        click.echo("\n".join(json.dumps([asdict(each) for each in guesses], ensure_ascii=False) for guesses in found))
        return
    click.echo("\n\n".join("\n".join(f"{each.token}\t{each.probability:.6f}" for each in group) for group in found))
