"""`heedful score`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from heedful.cli.alike_remarks import alike_remarks
from heedful.cli.options import computing_options
from heedful.cli.text_input import TextInput, text_input
from heedful.errors import UserError
from heedful.tasks.computing import Computing

if TYPE_CHECKING:
    from heedful.tasks.translation.pipeline import Score


@click.command()
@click.argument("model")
@text_input()
@click.option("--source", metavar="FILE", help="Source text, instead of pairs.")
@click.option("--target", metavar="FILE", help="Its translation, line by line.")
@click.option(
    "--length-penalty",
    type=float,
    default=0.0,
    show_default=True,
    help="Divide by the length penalty of this alpha, as `heedful translate --scores` does with 0.6.",
)
@click.option("--tokens", is_flag=True, help="Add a column with the log-probability of each subword and of the end.")
@computing_options
def score(
    model: str,
    given: TextInput,
    source: str | None,
    target: str | None,
    length_penalty: float,
    tokens: bool,
    computing: Computing,
) -> None:
    """Give the log-probability of given translations, one line for each pair.

    The pairs (source, tab, translation) are the arguments, the lines of --input, or those of standard input; or the two
    sides are in two files. A blank line stays blank.

    \b
    heedful score en-de --source test.en --target test.de
    heedful score en-de < pairs.tsv
    heedful score en-de --source test.en --target test.de --length-penalty 0.6
    """
    from heedful.cli.lines import answer_lines, remarks_on_lines, tell
    from heedful.tasks.loading import load_translator
    from heedful.text.whole_files import read_aligned

    if (source is None) != (target is None):
        raise UserError("--source and --target belong together: give both, or pairs in place of them")
    if source is not None and given.is_given:
        raise UserError("--source and --target are there, and pairs too: give one of them")
    translator = load_translator(model, computing)

    def lines_of(sources: list[str], targets: list[str], first: int) -> list[str]:
        scores = translator.score(sources, targets, length_penalty=length_penalty, first_index=first - 1)
        pairs = zip(scores, sources, targets, strict=True)
        return [_line(each, tokens) if (a + b).strip() else "" for each, a, b in pairs]

    def answer(first: int, lines: list[str]) -> list[str]:
        pairs = [_pair(number, line) for number, line in enumerate(lines, first)]
        return lines_of([pair[0] for pair in pairs], [pair[1] for pair in pairs], first)

    if source is None or target is None:
        answer_lines(given, answer)
    else:
        pairs = read_aligned(source, target, tell, (given.encoding, given.encoding))
        with alike_remarks(tell) as told, remarks_on_lines(1, told):
            lines = lines_of(*pairs, 1)
        click.echo("\n".join(lines))


def _pair(number: int, line: str) -> tuple[str, str]:
    source, tab, target = line.partition("\t")
    if line.strip() and not tab:
        raise UserError(f"line {number} has no tab: write a source text, a tab and its translation")
    if "\t" in target.rstrip():
        raise UserError(f"line {number} has more than one tab: write a source text, a tab and its translation")
    return source, target


def _line(result: Score, tokens: bool) -> str:
    total = f"{result.score:.6f}"
    return "\t".join([total, " ".join(f"{each:.4f}" for each in result.token_scores)]) if tokens else total
