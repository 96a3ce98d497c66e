"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def precision_option(help_text: str) -> Callable[[Any], Any]:
    """`--precision`: what a model computes with."""
    choices = click.Choice(["fp32", "int8"])
    return click.option("--precision", type=choices, default="fp32", show_default=True, help=help_text)
