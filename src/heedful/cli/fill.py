"""`heedful fill`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from heedful.cli.options import computing_options
from heedful.cli.text_input import TextInput, text_input
from heedful.tasks.computing import Computing

if TYPE_CHECKING:
    from heedful.tasks.masked_modeling.pipeline import Filling, MaskedLanguageModel


@click.command()
@click.argument("model")
@text_input()
@click.option(
    "--top", type=int, default=5, show_default=True, help="How many words to print for each mask, likeliest first."
)
@click.option(
    "--json", "as_json", is_flag=True, help="Write JSON: an array for each mask or, for lines, for each line."
)
@computing_options
def fill(model: str, given: TextInput, top: int, as_json: bool, computing: Computing) -> None:
    """Guess the word at each [MASK] of a text.

    One text after the model gives a line with word, tab, probability for each guess; the guesses for several masks are
    separated by blank lines. Several texts, --input and standard input give one line for each line of input, with the
    same columns for each guess, mask by mask. A blank line stays blank.

    \b
    heedful fill my-bert "The [MASK] barks."
    heedful fill my-bert --top 1 < in.txt > out.tsv
    """
    from heedful.cli.lines import answer_lines, load_as
    from heedful.config import require
    from heedful.tasks.masked_modeling.pipeline import MaskedLanguageModel

    require(top, "--top", 1)
    pipeline: MaskedLanguageModel = load_as(MaskedLanguageModel, model, computing, "masked language model")
    if len(given.texts) != 1:
        answer_lines(given, lambda first, lines: _lines(pipeline, lines, top, as_json))
        return
    (text,) = given.whole_texts("a text")
    found = pipeline.fill(text, top)
    if as_json:
        click.echo("\n".join(json.dumps([asdict(each) for each in group], ensure_ascii=False) for group in found))
    else:
        click.echo("\n\n".join("\n".join(_columns(each) for each in group) for group in found))


def _columns(guess: Filling) -> str:
    return f"{guess.token}\t{guess.probability:.6f}"


def _lines(pipeline: MaskedLanguageModel, lines: list[str], top: int, as_json: bool) -> list[str]:
    """A line for each line; one in which nothing can be guessed stays blank, with a remark."""
    found = pipeline.fill(lines, top)
    if as_json:
        return [
            json.dumps([[asdict(each) for each in group] for group in masks], ensure_ascii=False) for masks in found
        ]
    return ["\t".join(_columns(each) for group in masks for each in group) for masks in found]
