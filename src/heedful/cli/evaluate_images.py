"""The half of `heedful evaluate` that is for images."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from heedful.cli.files import parse_resolution
from heedful.errors import UserError

# Classes whose confusions are shown on a terminal; all are in the JSON.
SHOWN_CLASSES = 20


def show_image_scores(
    model: str,
    test: tuple[str | None, str | None, str | None],
    resolution: str | None,
    device: str,
    as_json: bool,
) -> None:
    """Measure a model on a folder of images, or on idx files, and print the scores."""
    from heedful.data.labelled_images import open_images
    from heedful.image_evaluation import evaluate_images
    from heedful.pipelines import ImageClassifier, load

    source, size = open_images(*test), parse_resolution(resolution)
    assert source is not None
    pipeline = load(model, device)
    if not isinstance(pipeline, ImageClassifier):
        raise UserError(f"{model} classifies no images: its task is {pipeline.config.task!r}")

    def remark(name: str, reason: str) -> None:
        click.echo(f"heedful: {name} is left out: {reason}", err=True)

    result = evaluate_images(pipeline, source, size, remark)
    if as_json:
        figures = {**asdict(result), "confusion": result.confusion.tolist(), "labels": pipeline.labels}
        click.echo(json.dumps(figures, ensure_ascii=False))
        return
    click.echo(f"accuracy  {result.accuracy:.2%}  of {result.images:,} images")
    click.echo(f"macro F1  {result.macro_f1:.4f}")
    click.echo(f"speed     {result.images / result.seconds:,.0f} images/s")
    if len(pipeline.labels) <= SHOWN_CLASSES:
        click.echo("\n" + confusion_table(pipeline.labels, result.confusion.tolist()))


def confusion_table(labels: tuple[str, ...], matrix: list[list[int]]) -> str:
    """A line for each class, with how often its examples were taken for each class."""
    numbered = [f"{number} {label}" for number, label in enumerate(labels, 1)]
    name = max(map(len, numbered))
    width = max(len(str(len(labels))), *(len(f"{count:,}") for row in matrix for count in row))
    head = " " * name + "".join(f"  {number:>{width}}" for number in range(1, len(labels) + 1))
    rows = [
        f"{label:<{name}}" + "".join(f"  {count:>{width},}" for count in row)
        for label, row in zip(numbered, matrix, strict=True)
    ]
    return "\n".join([head, *rows])
