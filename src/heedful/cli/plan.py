"""`heedful plan`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from heedful.cli.output_file import output_path
from heedful.errors import UserError
from heedful.machine.torch_needed import needs_torch

# Amounts beyond these are slips, such as a letter that was left out.
LIMITS = {"--gpu-memory": (1e6, 1e15), "--flops": (1e6, 1e21), "--network": (1e3, 1e18), "--tokens": (1.0, 1e18)}


@click.command()
@click.argument("model", metavar="PRESET|MODEL|CONFIG")
@click.option("--gpus", type=int, required=True, help="How many GPUs there are.")
@click.option("--gpu-memory", default="80G", show_default=True, metavar="BYTES", help="The memory of each.")
@click.option("--tokens", default="300B", show_default=True, metavar="NUMBER", help="Tokens of the whole run.")
@click.option(
    "--flops",
    default="400T",
    show_default=True,
    metavar="NUMBER",
    help="What each reaches in practice per second, not its peak.",
)
@click.option("--network", default="400G", show_default=True, metavar="BITS", help="What each sends per second.")
@click.option("--json", "as_json", is_flag=True, help="Write the plan as JSON.")
@click.option("--out", metavar="FILE", help="Also draw the memory, as plan.svg or plan.html.")
@needs_torch("planning")
def plan(
    model: str, gpus: int, gpu_memory: str, tokens: str, flops: str, network: str, as_json: bool, out: str | None
) -> None:
    """Plan the training of a model on many GPUs: parameters, FLOPs, memory per GPU, traffic, steps and days.

    Closed forms rank all ways to lay the GPUs out along the axes of [training.parallel]. The best three are then
    measured: the real model, spread as in training, takes a step here, on a device without memory, and the bytes of its
    tensors are counted. The time is an estimate on top of that; its assumptions are printed. MODEL is a preset, a model
    folder, or a settings file that names a preset.

    \b
    heedful plan gpt3_175b --gpus 1024 --gpu-memory 80G --tokens 300B
    heedful plan translation_big --gpus 8 --gpu-memory 24G --network 100G
    heedful plan run.toml --gpus 512 --json > plan.json
    heedful plan translation_100b --gpus 512 --out plan.svg
    """
    if not 1 <= gpus <= 2**17:
        raise UserError(f"--gpus is {gpus}, but must be between 1 and {2**17:,}")
    if out is not None:
        _check_picture(output_path(out, "--out", "plan.svg"))
    from heedful.planning.picture import picture
    from heedful.planning.plan import make_plan
    from heedful.planning.quantities import amount
    from heedful.planning.subject import subject_of
    from heedful.planning.table import print_plan
    from heedful.planning.timing import Hardware

    given = {"--gpu-memory": gpu_memory, "--flops": flops, "--network": network, "--tokens": tokens}
    memory, speed, sent, count = (amount(text, name, *LIMITS[name]) for name, text in given.items())
    hardware = Hardware(memory, speed, sent)
    found = make_plan(subject_of(model), gpus, count, hardware, lambda text: click.echo(text, err=True))
    if as_json:
        click.echo(json.dumps(found.to_json(), indent=1))
    else:
        print_plan(found)
    if out is not None:
        from heedful.files import replacing

        with replacing(Path(out)) as file:
            file.write_text(picture(found, Path(out).suffix), encoding="utf-8", newline="\n")
        click.echo(f"written to {out}", err=True)


def _check_picture(path: Path) -> None:
    """Raise a UserError, before anything is computed, for a file that cannot be a picture."""
    if path.suffix not in (".svg", ".html"):
        raise UserError(f"--out is {str(path)!r}: a picture is a file that ends in .svg or .html")
    if not path.absolute().parent.is_dir():
        raise UserError(f"--out is {str(path)!r}: there is no folder {path.parent}")
