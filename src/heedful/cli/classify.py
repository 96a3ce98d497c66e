"""`heedful classify`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from heedful.cli.files import parse_resolution
from heedful.errors import UserError

if TYPE_CHECKING:
    from heedful.pipelines import ImageClassifier


@click.command()
@click.argument("model")
@click.argument("inputs", nargs=-1, metavar="IMAGE...")
@click.option("--top", type=click.IntRange(1), default=1, show_default=True, help="Labels to show, likeliest first.")
@click.option("--resolution", metavar="PIXELS", help="Use images at another size than in training: 40, or 40x56.")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", help="What to compute on.")
def classify(model: str, inputs: tuple[str, ...], top: int, resolution: str | None, as_json: bool, device: str) -> None:
    """Tell what images show: a line with file, label and probability for each.

    \b
    heedful classify my-vit cat.png dog.jpg
    heedful classify my-vit photos/*.jpg --top 3 --resolution 64
    """
    from heedful.pipelines import ImageClassifier, load

    pipeline = load(model, device)
    if not isinstance(pipeline, ImageClassifier):
        raise UserError(f"{model} holds no classifier: its task is {pipeline.config.task!r}")
    classify_images(pipeline, inputs, top, parse_resolution(resolution), as_json)


def classify_images(
    pipeline: ImageClassifier, files: tuple[str, ...], top: int, resolution: tuple[int, int] | None, as_json: bool
) -> None:
    """Print the likeliest labels of image files."""
    if not files:
        raise UserError("no images: name one or more image files behind the model")
    for file, result in zip(files, pipeline.stream(files, resolution), strict=True):
        ranking = result.ranking[:top]
        if as_json:
            labels = [{"label": label, "probability": probability} for label, probability in ranking]
            click.echo(json.dumps({"file": file, "labels": labels}, ensure_ascii=False))
        else:
            for label, probability in ranking:
                click.echo(f"{file}\t{label}\t{probability:.4f}")
