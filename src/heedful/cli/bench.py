"""`heedful bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from heedful.errors import UserError
from heedful.machine.torch_needed import has_torch, torch_missing


@click.command()
@click.argument("programs", nargs=-1, metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Tiny settings, to check that everything runs.")
@click.option("--model", help="A trained translation model, instead of random weights.")
def bench(programs: tuple[str, ...], quick: bool, model: str | None) -> None:
    """Compare the speed of heedful with that of other toolkits.

    NAME is limits, training, translation, engine, scaling or report; without a name, all of them run, one after the
    other. On 2 cores training takes about ten minutes, translation and engine fifteen each. The programs are in the
    folder benchmarks of heedful's source code. They set up the other systems there, and write their results to
    benchmarks/results and docs/performance.md.

    \b
    heedful bench limits training
    heedful bench engine report --model en-de
    """
    root = Path(__file__).parents[3]
    if not (root / "benchmarks" / "speed").is_dir():
        raise UserError(
            "the benchmark programs are not part of the installed package: get heedful's source code, and run "
            "`make bench` in its folder"
        )
    arguments = [*programs, *(["--quick"] if quick else [])]
    if model is not None:
        from heedful.model_folder import check_model_folder

        if check_model_folder(Path(model)).task != "translation":
            raise UserError(f"{model} is not a translation model: give one that translates")
        arguments += ["--model", str(Path(model).resolve())]
    if not has_torch():
        raise torch_missing("`heedful bench`")
    result = subprocess.run([sys.executable, "-m", "benchmarks.speed", *arguments], cwd=root)
    sys.exit(result.returncode)
