"""`heedful classify`: N lines in, N lines out; or images."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from heedful.cli.options import batch_size_option, computing_options
from heedful.cli.text_input import TextInput, text_input
from heedful.config import require
from heedful.errors import UserError
from heedful.tasks.computing import Computing
from heedful.text.cleaning import escaped

if TYPE_CHECKING:
    from heedful.tasks.classification import Classification
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.labelling.classifier import Classifier


@click.command()
@click.argument("model")
@text_input("[TEXT | IMAGE]...")
@click.option("--top", type=int, default=1, show_default=True, help="How many labels to print, likeliest first.")
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object per line.")
@click.option("--resolution", metavar="PIXELS", help="Use images at a different size from training: 40, or 40x56.")
@batch_size_option(64)
@computing_options
def classify(model: str, given: TextInput, computing: Computing, top: int, **options: Any) -> None:
    """Label texts, or say what images show.

    The texts are the arguments, the lines of --input, or those of standard input; for a model that learned from pairs,
    a tab separates the two texts. Each text gives one line: label, tab, probability, and the next ones with --top. A
    blank line stays blank. Images are files; the line of each begins with its name.

    \b
    heedful classify sentiment "What a film!"
    heedful classify sentiment --top 2 < in.txt > out.tsv
    heedful classify my-vit cat.png dog.jpg --resolution 64
    """
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.labelling.classifier import Classifier
    from heedful.tasks.loading import load_with

    require(top, "--top", 1)
    pipeline = load_with(model, computing)
    if isinstance(pipeline, ImageClassifier):
        _images(pipeline, given, top, options)
    elif isinstance(pipeline, Classifier):
        _texts(pipeline, given, top, options)
    else:
        raise UserError(f"{model} holds no classifier: its task is {pipeline.config.task!r}")


def _texts(pipeline: Classifier, given: TextInput, top: int, options: dict[str, Any]) -> None:
    from heedful.cli.lines import answer_lines

    def answer(first: int, lines: list[str]) -> list[str]:
        texts = [_text(number, line, pipeline.takes_pairs) for number, line in enumerate(lines, first)]
        found = pipeline.classify(texts, batch_size=options["batch_size"])
        return [_written(each, top, options["as_json"]) for each in found]

    answer_lines(given, answer)


def _text(number: int, line: str, takes_pairs: bool) -> str | tuple[str, str]:
    """A text, or a pair of them for a model that learned from pairs; for others a tab is white space."""
    first, tab, second = line.partition("\t")
    if not takes_pairs or not tab:
        return line
    if "\t" in second.rstrip():
        raise UserError(f"line {number} has more than one tab: write a text, a tab and the second text")
    return first, second


def _images(pipeline: ImageClassifier, given: TextInput, top: int, options: dict[str, Any]) -> None:
    files = given.texts
    if not files:
        raise UserError("no images: name one or more image files after the model")
    from heedful.tasks.image_classification.images import parse_resolution

    resolution = parse_resolution(options["resolution"])
    for file, result in zip(files, pipeline.stream(files, resolution), strict=True):
        written = _written(result, top, options["as_json"], {"file": file})
        click.echo(written if options["as_json"] else f"{escaped(file)}\t{written}")


def _written(result: Classification, top: int, as_json: bool, more: dict[str, str] | None = None) -> str:
    ranking = result.ranking[:top]
    if as_json:
        labels = [{"label": label, "probability": share} for label, share in ranking]
        return json.dumps({**(more or {}), "labels": labels}, ensure_ascii=False)
    return "\t".join(f"{label}\t{share:.6f}" for label, share in ranking)
