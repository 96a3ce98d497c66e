"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from typing import Any

import click

from heedful.tasks.computing import Computing, check_batch_size
from heedful.tasks.declaration import ENCODING, Option

# Without a default: the settings file of a training run may name the device.
DEVICE = Option(("--device",), "What to compute on.", None, choices=("auto", "cpu", "cuda", "mps"))


precision_option = click.option(
    "--precision",
    type=click.Choice(["fp32", "int8"]),
    default="fp32",
    show_default=True,
    help="int8: 8-bit weights, on a CPU; faster, smaller, and a little less exact.",
)


def repetition_options(command: Any) -> Any:
    """`--repetition-penalty` and `--no-repeat-ngram`."""
    penalty = "Multiply the log-probability of tokens that have occurred; 1 turns it off."
    ngram = "Let no sequence of this many tokens occur twice; 0 turns it off."
    command = click.option("--no-repeat-ngram", type=int, default=0, show_default=True, help=ngram)(command)
    return click.option("--repetition-penalty", type=float, default=1.0, show_default=True, help=penalty)(command)


engine_option = click.option(
    "--engine",
    type=click.Choice(["auto", "core", "torch"]),
    default="auto",
    show_default=True,
    help="What computes: heedful's own engine (core) or torch; auto takes core wherever it can.",
)


def split_option(help_text: str) -> Callable[[Any], Any]:
    """`--split`: which lines are translated sentence by sentence."""
    choices = click.Choice(["auto", "sentences", "none"])
    return click.option("--split", type=choices, default="auto", show_default=True, help=help_text)


def batch_size_option(
    default: int, help_text: str = "Texts at a time; does not affect the results."
) -> Callable[[Any], Any]:
    """`--batch-size`: how many texts are computed at a time."""

    def checked(context: click.Context, option: click.Parameter, value: int) -> int:
        check_batch_size(value, "--batch-size")
        return value

    return click.option("--batch-size", type=int, default=default, show_default=True, help=help_text, callback=checked)


def declared(option: Option) -> Callable[[Any], Any]:
    """An option that a task declares."""
    settings: dict[str, Any] = {"help": option.help, "metavar": option.metavar, "multiple": option.multiple}
    if option.choices:
        settings["type"] = click.Choice(option.choices)
    elif option.kind:
        settings["type"] = option.kind
    if option.is_flag:
        settings["is_flag"] = True
    elif not option.multiple:
        settings |= {"default": option.default, "show_default": option.default is not None}
    return click.option(*option.names, **settings)


def with_options(options: Iterable[Option]) -> Callable[[Any], Any]:
    """Several declared options, in this order."""

    def add(command: Any) -> Any:
        for option in reversed(list(options)):
            command = declared(option)(command)
        return command

    return add


device_option = declared(replace(DEVICE, default="auto"))
encoding_option = declared(ENCODING)


def computing_options(command: Any) -> Any:
    """`--device`, `--engine` and `--precision`: what a model computes on and with, as one argument, `computing`."""

    @wraps(command)
    def packed(*arguments: Any, device: str, engine: Any, precision: Any, **others: Any) -> Any:
        return command(*arguments, computing=Computing(device, engine, precision), **others)

    for option in (device_option, engine_option, precision_option):
        packed = option(packed)
    return packed
