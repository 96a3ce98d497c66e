"""`heedful train`: one command for each thing that can be learned."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from heedful.cli.options import encoding_option, row_options
from heedful.cli.usage_errors import Commands
from heedful.config import merge, parse_assignment, read_toml
from heedful.errors import UserError

Command = Callable[..., None]
FROM = click.option(
    "--from",
    "from_model",
    metavar="MODEL",
    help="Start from the weights, the settings and the vocabulary of this model folder.",
)

# Options that every job has, as (names, settings of click.option).
SHARED: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--out",), {"metavar": "FOLDER", "help": "Where the model goes."}),
    (("--preset",), {"metavar": "NAME", "help": "A model size; by default by the data and the machine."}),
    (("--steps",), {"type": int, "help": "End after so many steps."}),
    (("--epochs",), {"type": int, "help": "End after so many passes over the data."}),
    (
        ("--budget",),
        {"metavar": "TIME", "help": "End after this time, such as 30m or 1h30m, with a finished schedule."},
    ),
    (
        ("--extend",),
        {"is_flag": True, "help": "Go on with a finished run to a later end: the same command with a larger limit."},
    ),
    (("--device",), {"type": click.Choice(["auto", "cpu", "cuda", "mps"]), "help": "What to compute on."}),
    (
        ("--config", "config_file"),
        {"metavar": "FILE", "help": "Settings as TOML: tables data, model and training."},
    ),
    (
        ("--set", "assignments"),
        {"multiple": True, "metavar": "NAME=VALUE", "help": "One setting, as training.seed=3 or model.width=256."},
    ),
]


@click.group(cls=Commands)
def train() -> None:
    """Train a model from your own files.

    \b
    heedful train translation --source train.en --target train.de --out en-de
    heedful train language-model --text book.txt --out my-gpt
    """


def job(command: Command) -> click.Command:
    """A job's command with the options that all jobs have."""
    for names, settings in reversed(SHARED):
        command = click.option(*names, **settings)(command)
    return train.command(epilog="Ctrl-C saves and ends the run; the same command continues it.")(command)


@job
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
    help="Source, tab, target; CSV and JSON lines too; - is standard input. Instead of the two above.",
)
@click.option(
    "--valid-source",
    multiple=True,
    metavar="FILE",
    help="Held-out source text; without it a part is held out.",
)
@click.option("--valid-target", multiple=True, metavar="FILE", help="Held-out target text.")
@click.option("--valid-tsv", multiple=True, metavar="FILE", help="Held-out pairs as TSV.")
@click.option("--source-language", metavar="CODE", help="Read from the file names (train.en.gz) if not given.")
@click.option("--target-language", metavar="CODE", help="Likewise.")
@encoding_option
@row_options
@click.option("--family", metavar="NAME", help="encoder_decoder, or recurrent: what Transformers replaced.")
@FROM
def translation(**options: Any) -> None:
    """Learn to translate from two aligned text files.

    \b
    heedful train translation --source train.en --target train.de --out en-de
    heedful train translation --tsv pairs.tsv.gz --out en-de --budget 30m
    heedful train translation --tsv ours.tsv --out ours --from en-de --epochs 3
    heedful train translation --source 'p*.en.gz' --target 'p*.de.gz' --out big --preset translation_base
    """
    run_job("translation.job", "TranslationData", options, "heedful translate {} < in.txt > out.txt")


@job
@click.option(
    "--text",
    multiple=True,
    metavar="FILE",
    help="Text: plain, .gz or .xz; patterns such as 'books/*.txt' and - (standard input) too.",
)
@click.option("--valid-text", multiple=True, metavar="FILE", help="Held-out text; without it a part is held out.")
@click.option(
    "--document",
    type=click.Choice(["file", "line"]),
    help="What a document is, by default a file; no document sees another one.",
)
@click.option(
    "--tokenizer",
    type=click.Choice(["subwords", "characters"]),
    help="What a token is, by default a byte-level subword.",
)
@encoding_option
@click.option(
    "--family",
    type=click.Choice(["decoder_only", "xlnet"]),
    help="The kind of model, by default decoder_only; xlnet learns to predict tokens in any order.",
)
@FROM
def language_model(**options: Any) -> None:
    """Learn to continue text.

    \b
    heedful train language-model --text book.txt --out my-gpt
    heedful train language-model --text 'corpus/*.txt.gz' --out my-gpt --budget 1h --preset language_small
    heedful train language-model --text book.txt --out my-xlnet --family xlnet
    heedful train language-model --text letters.txt --out my-letters --from my-gpt
    """
    run_job("language_modeling.job", "TextData", options, 'heedful generate {} "Once upon a time"')


@job
@click.option("--text", multiple=True, metavar="FILE", help="Text: plain, .gz or .xz; patterns and - too.")
@click.option("--valid-text", multiple=True, metavar="FILE", help="Held-out text; without it a part is held out.")
@click.option(
    "--document", type=click.Choice(["line", "file"]), help="What a document is, by default a line; long ones are cut."
)
@click.option("--whole-words", is_flag=True, help="Hide all subwords of a word together.")
@encoding_option
@FROM
def masked_language_model(**options: Any) -> None:
    """Learn to guess hidden words: an encoder to start classifiers and taggers from.

    \b
    heedful train masked-language-model --text sentences.txt --out my-bert
    """
    run_job("masked_modeling.job", "MaskedTextData", options, 'heedful fill {} "The [MASK] barks."')


@job
@click.option(
    "--data",
    multiple=True,
    metavar="FILE",
    help="Label, tab, text; a second text behind another tab. CSV and JSON lines too. Also .gz or .xz.",
)
@click.option("--valid-data", multiple=True, metavar="FILE", help="Held-out texts; without them a part is held out.")
@encoding_option
@row_options
@FROM
def classifier(**options: Any) -> None:
    """Learn to label texts, or pairs of texts.

    \b
    heedful train classifier --data train.tsv --out sentiment
    heedful train classifier --data train.tsv --out sentiment --from my-bert --epochs 3
    """
    run_job("labelling.job", "ClassifierData", options, "heedful classify {} < in.txt")


@job
@click.option(
    "--data",
    multiple=True,
    metavar="FILE",
    help="Word, tab or space, tag; blank lines between sentences. JSON lines too. Also .gz or .xz.",
)
@click.option("--valid-data", multiple=True, metavar="FILE", help="Held-out text; without it a part is held out.")
@encoding_option
@row_options
@FROM
def tagger(**options: Any) -> None:
    """Learn to tag words.

    \b
    heedful train tagger --data train.conll --out my-tagger
    """
    run_job("labelling.job", "TaggerData", options, "heedful tag {} < in.txt")


@job
@click.option("--images", metavar="FOLDER", help="Images, with a sub-folder for each class.")
@click.option("--idx-images", metavar="FILE", help="Images as an idx file, as MNIST has them: plain or .gz.")
@click.option("--idx-labels", metavar="FILE", help="Their labels.")
@click.option("--valid-images", metavar="FOLDER", help="Held-out images; without them a part is held out.")
@click.option("--valid-idx-images", metavar="FILE", help="Held-out images as an idx file.")
@click.option("--valid-idx-labels", metavar="FILE", help="Their labels.")
@click.option(
    "--from",
    "start_from",
    metavar="MODEL",
    help="A model to start from; its classes and its size of images may be others.",
)
def image_classifier(**options: Any) -> None:
    """Learn to tell what images show.

    \b
    heedful train image-classifier --images photos/ --out my-vit --budget 30m
    heedful train image-classifier --idx-images train-images.gz --idx-labels train-labels.gz --out digits
    heedful train image-classifier --images photos/ --out larger --from my-vit --set 'model.image_size=[56,56]'
    """
    run_job("image_classification.job", "ImageData", options, "heedful classify {} image.png")


def run_job(module: str, data_class: str, options: dict[str, Any], usage: str) -> None:
    """Train, and say what to do next."""
    job_data = getattr(importlib.import_module(f"heedful.tasks.{module}"), data_class)
    run_config = requested_run(job_data, options)
    from heedful.inspection.run.diagnosis import diagnose
    from heedful.inspection.run.run_record import read_run
    from heedful.training.display import RunDisplay, display_on_stderr
    from heedful.training.run import train as run_training

    display: RunDisplay = display_on_stderr()
    with display:
        result = run_training(run_config, display)
    folder = result.folder
    if not result.finished:
        click.echo(f"stopped and saved in {folder}: the same command continues", err=True)
        sys.exit(130)
    record = read_run(folder)
    click.echo(f"done: {folder} ({record.best_in_words})", err=True)
    for finding in diagnose(record):
        click.echo(f"{'warning' if finding.fault else 'note'}: {finding}", err=True)
    click.echo(f"next: {usage.format(folder)}", err=True)


def requested_run(job_data: type[Any], options: dict[str, Any]) -> Any:
    """The run that the command line and its settings file ask for; the command line wins."""
    from heedful.config import from_dict
    from heedful.training.run_config import RunConfig

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
    fields = job_data.__dataclass_fields__
    # A flag that is off is not given, unless it is one that can be given either way.
    names = [
        name
        for name in fields
        if options.get(name) not in (None, ()) and not (options[name] is False and fields[name].default is False)
    ]
    given = {name: list(options[name]) if isinstance(options[name], tuple) else options[name] for name in names}
    file_data, file_out, file_preset = (settings.pop(name, None) for name in ("data", "out", "preset"))
    from_dict(job_data, file_data or {}, "data")  # its own mistakes first
    data = from_dict(job_data, merge(file_data or {}, given), "data")
    out, preset = options["out"] or file_out, options["preset"] or file_preset
    for name, value in (("out", out), ("preset", preset)):
        if value is not None and not isinstance(value, str):
            raise UserError(f"setting {name!r} is {value!r}, expected str")
    if not out:
        raise UserError("--out FOLDER is missing: where is the model to go?")
    return RunConfig(out, data, preset, settings, options.get("family"), options["extend"])
