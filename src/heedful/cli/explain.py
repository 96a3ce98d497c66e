"""`heedful explain`."""

from __future__ import annotations

import click

from heedful.cli.inspect import write_page
from heedful.cli.options import device_option
from heedful.cli.output_file import output_path
from heedful.cli.subject import SubjectInput, subject_options
from heedful.machine.torch_needed import has_torch, torch_missing


@click.command()
@click.argument("model")
@subject_options
@click.option("--out", metavar="FILE", default="explain.html", show_default=True, help="Where the page goes.")
@device_option
def explain(
    model: str,
    subject: SubjectInput,
    out: str,
    device: str,
) -> None:
    """Follow a token through a model, step by step, with the real numbers, on a page that needs no network.

    The page draws the model as it is. Open a block to see the formula of each step, its shapes, its matrix, whose cells
    you can read, and the line of code that computes it: from token ids to queries, keys and values, scores, the
    softmax, and finally the probabilities. A decoder's steps play one token after another. `heedful serve` has the
    same, with switches that compute again: no scaling, no mask, no positions, one head off.

    \b
    heedful explain en-de "A dog runs." --out explain.html
    heedful explain en-de "A dog runs." --target "Ein Hund läuft."
    heedful explain my-gpt "To be, or not to be"
    heedful explain my-vit --image cat.jpg
    """
    place = output_path(out, "--out", "explain.html")
    if not has_torch():
        raise torch_missing("following a computation")
    from heedful.tasks.explaining import explained

    write_page(subject.seen(model, device, explained).html(), place)
