"""Settings of a run that an option gives and `--set` gives too, with another value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from heedful.errors import UserError

_ABSENT = object()


def refuse_given_twice(assigned: Mapping[str, Any], given: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Raise a UserError for the first setting that has one value in `--set` and another in an option.

    `assigned` is nested; `given` has the settings that options give, by their dotted names, as names of options.
    """
    for setting, name in given.items():
        value = _value_of(assigned, setting)
        direct = list(options[name]) if isinstance(options[name], tuple) else options[name]
        if value is not _ABSENT and value != direct:
            raise UserError(f"{setting} is given twice: {_flag(name, direct)} and --set; give one")


def _value_of(assigned: Mapping[str, Any], setting: str) -> Any:
    value: Any = assigned
    for part in setting.split("."):
        value = value.get(part, _ABSENT) if isinstance(value, dict) else _ABSENT
    return value


def _flag(name: str, value: Any) -> str:
    """What the command that runs calls an option."""
    (option,) = (each for each in click.get_current_context().command.params if each.name == name)
    return option.secondary_opts[0] if value is False else option.opts[0]
