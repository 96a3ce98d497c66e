"""`heedful explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from heedful.cli.inspect import write_page
from heedful.cli.lines import tell
from heedful.cli.options import device_option
from heedful.cli.output_file import output_path
from heedful.cli.text_input import TextInput, text_input
from heedful.errors import UserError
from heedful.machine.torch_needed import has_torch, torch_missing
from heedful.tasks.remarks import remarks

if TYPE_CHECKING:
    from heedful.inspection.explain.document import Explained


@click.command()
@click.argument("model")
@text_input("[TEXT]")
@click.option(
    "--target",
    metavar="TEXT",
    help="Translation: the output to follow, in place of the model's own. Language models: what follows the text. "
    "Classifiers of pairs: the second text.",
)
@click.option("--image", metavar="FILE", help="Image classifiers: the image to follow.")
@click.option("--resolution", metavar="PIXELS", help="Use the image at another size than in training: 40, or 40x56.")
@click.option("--out", metavar="FILE", default="explain.html", show_default=True, help="Where the page goes.")
@device_option
def explain(
    model: str,
    given: TextInput,
    target: str | None,
    image: str | None,
    resolution: str | None,
    out: str,
    device: str,
) -> None:
    """Follow a token through a model, step by step, with the real numbers, on a page that needs no network.

    The page draws the model as it is. Open a block, and see for each step its formula, its shapes, its matrix, whose
    cells can be read, and the line of code that computes it: from token ids to queries, keys and values, scores, the
    softmax, and at last the probabilities. A decoder's steps are played one token after another. `heedful serve` has
    the same, with switches that compute again: no scaling, no mask, no positions, one head off.

    \b
    heedful explain en-de "A dog runs." --out explain.html
    heedful explain en-de "A dog runs." --target "Ein Hund läuft."
    heedful explain my-gpt "To be, or not to be"
    heedful explain my-vit --image cat.jpg
    """
    place = output_path(out, "--out", "explain.html")
    if not has_torch():
        raise torch_missing("following a computation")
    if image is not None:
        if given.is_given or target is not None:
            raise UserError("--image follows an image: it takes no text and no --target")
        page = _of_image(model, image, resolution, device)
    else:
        if resolution is not None:
            raise UserError("--resolution is the size of an image: give --image FILE too")
        page = _of_text(model, given, target, device)
    write_page(page.html(), place)


def _of_text(model: str, given: TextInput, target: str | None, device: str) -> Explained:
    from heedful.tasks.explaining import explained
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.loading import load

    if len(given.texts) > 1:
        raise UserError(f"there are {len(given.texts)} texts after the model: give one, in quotes")
    pipeline: Any = load(model, device, engine="torch")
    if isinstance(pipeline, ImageClassifier):
        raise UserError(f"{model} tells what images show: give --image FILE")
    (text,) = given.whole_texts("a text to follow")
    if not text and not given.is_given:
        raise UserError(f'no text to follow: give it after the model, as in heedful explain {model} "A dog runs."')
    with remarks() as found:
        page = explained(pipeline, text, target=target)
    for _, remark in found:
        tell(f"the text {remark}")
    return page


def _of_image(model: str, image: str, resolution: str | None, device: str) -> Explained:
    from heedful.tasks.explaining import explained
    from heedful.tasks.image_classification.images import parse_resolution
    from heedful.tasks.image_classification.pipeline import ImageClassifier
    from heedful.tasks.loading import load

    size = parse_resolution(resolution)
    pipeline = load(model, device)
    if not isinstance(pipeline, ImageClassifier):
        raise UserError(f"{model} holds no image classifier: its task is {pipeline.config.task!r}; give a text")
    return explained(pipeline, image, resolution=size)
