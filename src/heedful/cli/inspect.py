"""`heedful inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heedful.cli.lines import tell
from heedful.cli.options import device_option
from heedful.cli.output_file import output_path
from heedful.cli.text_input import TextInput, text_input
from heedful.errors import UserError
from heedful.machine.torch_needed import has_torch, torch_missing
from heedful.tasks.remarks import remarks

if TYPE_CHECKING:
    from heedful.inspection.attention.maps import AttentionMaps


@click.command()
@click.argument("model")
@text_input("[TEXT]")
@click.option(
    "--target",
    metavar="TEXT",
    help="Translation: the output to look at, in place of the model's own. Language models: what follows the text. "
    "Classifiers of pairs: the second text.",
)
@click.option("--image", metavar="FILE", help="Image classifiers: the image to look at.")
@click.option("--resolution", metavar="PIXELS", help="Use the image at another size than in training: 40, or 40x56.")
@click.option("--out", metavar="FILE", help="Where the page goes; by default attention.html, or training.html.")
@click.option("--json", "as_json", is_flag=True, help="Write the data as JSON, to standard output or to --out.")
@click.option("--training", is_flag=True, help="Look at the training run in the folder: its curves, and what they say.")
@device_option
def inspect(
    model: str,
    given: TextInput,
    target: str | None,
    image: str | None,
    resolution: str | None,
    out: str | None,
    as_json: bool,
    training: bool,
    device: str,
) -> None:
    """Draw what a model attends to: every layer and head, exact, on a page that needs no network.

    The page has all heads as small maps, each of them in detail, as a matrix or as lines between tokens, the rollout,
    entropy and mean distance, and for each output token its probability and the runners-up. Of images, attention is
    drawn over the patches. A translation that is not given with --target is decoded first. The text is the one given,
    or all of --input or of standard input.

    \b
    heedful inspect en-de "A dog runs." --out attention.html
    heedful inspect en-de "A dog runs." --target "Ein Hund läuft."
    heedful inspect my-gpt "To be, or not to be" --json > attention.json
    heedful inspect my-vit --image cat.jpg
    heedful inspect en-de --training
    """
    usual = "training.html" if training else "attention.html"
    place = output_path(usual if out is None else out, "--out", usual)
    if training:
        if as_json or given.is_given or any(each is not None for each in (target, image, resolution)):
            raise UserError("--training looks at a run: it takes no text, --target, --image, --resolution or --json")
        _write_training(Path(model), place)
        return
    if not has_torch():
        raise torch_missing("looking into attention")
    if image is not None:
        if given.is_given or target is not None:
            raise UserError("--image looks at an image: it takes no text and no --target")
        maps = _image_maps(model, image, resolution, device)
    else:
        if resolution is not None:
            raise UserError("--resolution is the size of an image: give --image FILE too")
        maps = _text_maps(model, given, target, device)
    if not as_json:
        write_page(maps.html(), place)
        return
    data = json.dumps(maps.to_json(), ensure_ascii=False)
    if out is None:
        click.echo(data)
    else:
        write_page(data + "\n", place)


def _write_training(folder: Path, place: Path) -> None:
    """Draw a run, and say which of its processes is the slowest, if it has several."""
    from heedful.inspection.run.rank_times import step_times
    from heedful.inspection.run.run_record import read_run
    from heedful.inspection.run.training_page import training_page

    run = read_run(folder)
    write_page(training_page(run), place)
    if times := step_times(run):
        click.echo(times.in_words(), err=True)


def _text_maps(model: str, given: TextInput, target: str | None, device: str) -> AttentionMaps:
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.loading import load

    if len(given.texts) > 1:
        raise UserError(f"there are {len(given.texts)} texts after the model: give one, in quotes")
    pipeline = load(model, device, engine="torch")
    if isinstance(pipeline, ImageClassifier):
        raise UserError(f"{model} tells what images show: give --image FILE")
    (text,) = given.whole_texts("a text to look at")
    if not text and not given.is_given:
        raise UserError(f'no text to look at: give it after the model, as in heedful inspect {model} "A dog runs."')
    with remarks() as found:
        maps = pipeline.attention(text, target)
    for _, remark in found:
        tell(f"the text {remark}")
    return maps


def _image_maps(model: str, image: str, resolution: str | None, device: str) -> AttentionMaps:
    from heedful.tasks.image_classification.images import parse_resolution
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.loading import load

    size = parse_resolution(resolution)
    pipeline = load(model, device)
    if not isinstance(pipeline, ImageClassifier):
        raise UserError(f"{model} holds no image classifier: its task is {pipeline.config.task!r}; give a text")
    return pipeline.attention(image, size)


def write_page(content: str, out: Path) -> None:
    """Write a page, or its data, in one step, and say where it went."""
    from heedful.files import replacing

    with replacing(out) as file:
        file.write_text(content, encoding="utf-8", newline="\n")
    click.echo(f"written to {out}", err=True)
