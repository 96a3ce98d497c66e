"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def precision_option(help_text: str) -> Callable[[Any], Any]:
    """`--precision`: what a model computes with."""
    choices = click.Choice(["fp32", "int8"])
    return click.option("--precision", type=choices, default="fp32", show_default=True, help=help_text)


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
