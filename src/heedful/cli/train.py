"""`heedful train`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from heedful.config import merge, parse_assignment, read_toml
from heedful.errors import UserError


@click.group()
def train() -> None:
    """Train a model from your own files."""


@train.command(epilog="Ctrl-C saves and ends the run; the same command continues it.")
@click.option(
    "--source",
    multiple=True,
    metavar="FILE",
    help="Source text: plain, .gz or .xz; a pattern such as 'part*.en' too.",
)
@click.option(
    "--target", multiple=True, metavar="FILE", help="Target text, line by line the translation of the source."
)
@click.option(
    "--tsv",
    multiple=True,
    metavar="FILE",
    help="Source, tab, target; - is standard input. Instead of the two above.",
)
@click.option(
    "--valid-source",
    multiple=True,
    metavar="FILE",
    help="Held-out source text; without it a part is held out.",
)
@click.option("--valid-target", multiple=True, metavar="FILE", help="Held-out target text.")
@click.option("--valid-tsv", multiple=True, metavar="FILE", help="Held-out pairs as TSV.")
@click.option("--out", metavar="FOLDER", help="Where the model goes.")
@click.option("--source-language", metavar="CODE", help="Read from the file names (train.en.gz) if not given.")
@click.option("--target-language", metavar="CODE", help="Likewise.")
@click.option(
    "--preset",
    metavar="NAME",
    help="translation_tiny, _small, _base or _big; by default by the data and the machine.",
)
@click.option("--steps", type=int, help="End after so many steps.")
@click.option("--epochs", type=int, help="End after so many passes over the data.")
@click.option("--budget", metavar="TIME", help="End after this time, such as 30m or 1h30m, with a finished schedule.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), help="What to compute on.")
@click.option("--config", "config_file", metavar="FILE", help="Settings as TOML: tables data, model and training.")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="One setting, as model.decoder.num_layers=3.",
)
def translation(**options: Any) -> None:
    """Learn to translate from two aligned text files.

    \b
    heedful train translation --source train.en --target train.de --out en-de
    heedful train translation --tsv pairs.tsv.gz --out en-de --budget 30m
    heedful train translation --source 'p*.en.gz' --target 'p*.de.gz' --out big --preset translation_base
    """
    run_config = requested_run(options)
    from heedful.training.display import RunDisplay, display_on_stderr
    from heedful.training.run import train as run_training

    display: RunDisplay = display_on_stderr()
    with display:
        result = run_training(run_config, display)
    folder = result.folder
    if not result.finished:
        click.echo(f"stopped and saved in {folder}: the same command continues", err=True)
        sys.exit(130)
    click.echo(f"done: {folder} (validation loss {result.best_loss:.4f})", err=True)
    click.echo(f"next: heedful translate {folder} < in.txt > out.txt", err=True)


def requested_run(options: dict[str, Any]) -> Any:
    """The run that the command line and its settings file ask for; the command line wins."""
    from heedful.config import from_dict
    from heedful.training.run_config import RunConfig, TranslationData

    settings: dict[str, Any] = {}
    if options["config_file"]:
        settings = read_toml(Path(options["config_file"]))
    for assignment in options["assignments"]:
        settings = merge(settings, parse_assignment(assignment))
    limit = {name: options[name] for name in ("steps", "epochs", "budget") if options[name] is not None}
    if limit:
        settings = merge(settings, {"training": {"limit": limit}})
    if options["device"]:
        settings = merge(settings, {"training": {"machine": {"device": options["device"]}}})
    names = ("source", "target", "tsv", "valid_source", "valid_target", "valid_tsv")
    given = {name: list(options[name]) for name in names if options[name]}
    given |= {name: options[name] for name in ("source_language", "target_language") if options[name]}
    file_data, file_out, file_preset = (settings.pop(name, None) for name in ("data", "out", "preset"))
    from_dict(TranslationData, file_data or {}, "data")  # its own mistakes first
    data = from_dict(TranslationData, merge(file_data or {}, given), "data")
    out, preset = options["out"] or file_out, options["preset"] or file_preset
    for name, value in (("out", out), ("preset", preset)):
        if value is not None and not isinstance(value, str):
            raise UserError(f"setting {name!r} is {value!r}, expected str")
    if not out:
        raise UserError("--out FOLDER is missing: where is the model to go?")
    return RunConfig(out, data, preset, settings)
