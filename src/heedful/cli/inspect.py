"""`heedful inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heedful.cli.options import device_option
from heedful.cli.output_file import output_path
from heedful.cli.subject import SubjectInput, subject_options
from heedful.errors import UserError
from heedful.machine.torch_needed import has_torch, torch_missing

if TYPE_CHECKING:
    from heedful.inspection.attention.maps import AttentionMaps


@click.command()
@click.argument("model")
@subject_options
@click.option("--out", metavar="FILE", help="Where the page goes; by default attention.html, or training.html.")
@click.option("--json", "as_json", is_flag=True, help="Write the data as JSON, to standard output or to --out.")
@click.option(
    "--training", is_flag=True, help="Look at the training run in the folder: its curves, and what they mean."
)
@device_option
def inspect(
    model: str,
    subject: SubjectInput,
    out: str | None,
    as_json: bool,
    training: bool,
    device: str,
) -> None:
    """Draw what a model attends to: the exact weights of every layer and head, on a page that needs no network.

    The page has all heads as small maps, and each of them in detail, as a matrix or as lines between tokens; the
    rollout, the entropy and the mean distance; and for each output token its probability and the runners-up. For
    images, the attention is drawn over the patches. A translation that is not given with --target is decoded first. The
    text is the argument, or all of --input or of standard input.

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
        if as_json or subject.is_given:
            raise UserError("--training looks at a run: it takes no text, --target, --image, --resolution or --json")
        _write_training(Path(model), place)
        return
    if not has_torch():
        raise torch_missing("looking into attention")
    maps: AttentionMaps = subject.seen(model, device, lambda pipeline, given, **how: pipeline.attention(given, **how))
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


def write_page(content: str, out: Path) -> None:
    """Write a page, or its data, in one step, and say where it went."""
    from heedful.files import replacing

    with replacing(out) as file:
        file.write_text(content, encoding="utf-8", newline="\n")
    click.echo(f"written to {out}", err=True)
