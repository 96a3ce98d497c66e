"""`heedful tag`: N lines in, N lines out."""

from __future__ import annotations

import click

from heedful.cli.options import batch_size_option, computing_options
from heedful.cli.text_input import TextInput, text_input
from heedful.tasks.computing import Computing


@click.command()
@click.argument("model")
@text_input()
@batch_size_option(64)
@computing_options
def tag(model: str, given: TextInput, batch_size: int, computing: Computing) -> None:
    """Tag words: a line of words separated by spaces gives a line with as many tags.

    The texts are the arguments, the lines of --input, or those of standard input. A blank line stays blank.

    \b
    heedful tag my-tagger "Anna lives in Rome"
    heedful tag my-tagger < sentences.txt > tags.txt
    """
    from heedful.cli.lines import answer_lines, load_as
    from heedful.tasks.labelling.tagger import Tagger

    pipeline: Tagger = load_as(Tagger, model, computing, "tagger")

    def answer(first: int, lines: list[str]) -> list[str]:
        return [" ".join(word.tag for word in words) for words in pipeline.tag(lines, batch_size=batch_size)]

    answer_lines(given, answer)
