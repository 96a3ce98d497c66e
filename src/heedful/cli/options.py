"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def precision_option(help_text: str) -> Callable[[Any], Any]:
    """`--precision`: what a model computes with."""
    choices = click.Choice(["fp32", "int8"])
    return click.option("--precision", type=choices, default="fp32", show_default=True, help=help_text)


def split_option(help_text: str) -> Callable[[Any], Any]:
    """`--split`: which lines are translated sentence by sentence."""
    choices = click.Choice(["auto", "sentences", "none"])
    return click.option("--split", type=choices, default="auto", show_default=True, help=help_text)


def device_option(command: Any) -> Any:
    """`--device`: what computes."""
    choices = click.Choice(["auto", "cpu", "cuda", "mps"])
    return click.option("--device", type=choices, default="auto", show_default=True, help="What to compute on.")(
        command
    )


def batch_size_option(default: int) -> Callable[[Any], Any]:
    """`--batch-size`: how many texts are computed at a time."""
    help_text = "Texts at a time; does not change results."
    return click.option("--batch-size", type=int, default=default, show_default=True, help=help_text)


def encoding_option(command: Any) -> Any:
    """`--encoding`: what text files are written in."""
    return click.option(
        "--encoding", metavar="NAME", help="Of the text files, such as iso-8859-1; by default utf-8, or by their mark."
    )(command)


def row_options(command: Any) -> Any:
    """`--columns`, `--header` and `--delimiter`: how table files are laid out."""
    for option in (
        click.option(
            "--delimiter", metavar="SIGN", help="Between columns: tab, comma, semicolon, pipe, space, or a sign."
        ),
        click.option("--header/--no-header", default=None, help="Whether the first row names the columns."),
        click.option("--columns", metavar="LIST", help="Which columns to read, by number or name: 2,1 or label,text."),
    ):
        command = option(command)
    return command
