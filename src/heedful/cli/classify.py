"""`heedful classify`: N lines in, N lines out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from heedful.config import require

if TYPE_CHECKING:
    from heedful.pipelines import Classification


@click.command()
@click.argument("model")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--top", type=int, default=1, show_default=True, help="Labels for each text, the likeliest first.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object a line.")
@click.option("--batch-size", type=int, default=64, show_default=True, help="Texts at a time; does not change results.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
def classify(model: str, texts: tuple[str, ...], top: int, as_json: bool, batch_size: int, device: str) -> None:
    """Label texts: those given, or lines of standard input; a tab separates the two texts of a pair.

    Each text gives one line: label, tab, probability, and so on for --top. A blank line stays blank.

    \b
    heedful classify sentiment "What a film!"
    heedful classify sentiment --top 2 < in.txt > out.tsv
    """
    from heedful.cli.lines import answer_lines, load_as, remarks_on_lines
    from heedful.pipelines import Classifier

    require(top, "--top", 1)
    pipeline: Classifier = load_as(Classifier, model, device, "classifier")

    def answer(lines: list[str]) -> list[str]:
        found = pipeline.classify([_text(line) for line in lines], batch_size=batch_size)
        return [_written(each, top, as_json) for each in found]

    if not texts:
        answer_lines(answer)
        return
    with remarks_on_lines(1):
        answers = answer(list(texts))
    click.echo("\n".join(answers))


def _text(line: str) -> str | tuple[str, str]:
    first, tab, second = line.partition("\t")
    return (first, second) if tab else first


def _written(result: Classification, top: int, as_json: bool) -> str:
    ranking = result.ranking[:top]
    if as_json:
        return json.dumps({"labels": [{"label": label, "probability": share} for label, share in ranking]})
    return "\t".join(f"{label}\t{share:.6f}" for label, share in ranking)
