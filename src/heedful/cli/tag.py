"""`heedful tag`: N lines in, N lines out."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from heedful.cli.options import batch_size_option, computing_options
from heedful.cli.text_input import TextInput, text_input
from heedful.tasks.computing import Computing

if TYPE_CHECKING:
    from heedful.tasks.labelling.tagger import TaggedWord


@click.command()
@click.argument("model")
@text_input()
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object per line: each word, its tag, probability.")
@batch_size_option(64)
@computing_options
def tag(model: str, given: TextInput, as_json: bool, batch_size: int, computing: Computing) -> None:
    """Tag words: a line of words separated by spaces gives a line with as many tags.

    The texts are the arguments, the lines of --input, or those of standard input. A blank line stays blank;
    with --json it has no words.

    \b
    heedful tag my-tagger "Anna lives in Rome"
    heedful tag my-tagger < sentences.txt > tags.txt
    heedful tag my-tagger --json < sentences.txt > tags.jsonl
    """
    from heedful.cli.lines import answer_lines, load_as
    from heedful.tasks.labelling.tagger import Tagger

    pipeline: Tagger = load_as(Tagger, model, computing, "tagger")

    def answer(first: int, lines: list[str]) -> list[str]:
        return [_written(words, as_json) for words in pipeline.tag(lines, batch_size=batch_size)]

    answer_lines(given, answer)


def _written(words: list[TaggedWord], as_json: bool) -> str:
    if as_json:
        return json.dumps({"words": [asdict(word) for word in words]}, ensure_ascii=False)
    return " ".join(word.tag for word in words)
