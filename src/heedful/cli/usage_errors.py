"""Mistakes on the command line, in the one style that all errors have: one line, and what to do."""

from __future__ import annotations

import re
from typing import Any

import click

from heedful.errors import UserError


class Commands(click.Group):
    """Commands; the error for a misspelt one names the nearest."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        command = super().get_command(context, name)
        if command is not None and context.resilient_parsing:  # a shell asks what could come next
            from heedful.cli.completion import complete_names

            complete_names(command)
        return command

    def resolve_command(self, context: click.Context, arguments: list[str]) -> Any:
        names = self.list_commands(context)
        if arguments and arguments[0] not in names and not context.resilient_parsing:
            from heedful.config import nearest  # only now: help does not need it

            path = "" if context.parent is None else f" of {context.command_path}"
            raise UserError(f"unknown command {arguments[0]!r}{path}: {nearest(arguments[0], names)}")
        return super().resolve_command(context, arguments)

    def parse_args(self, context: click.Context, arguments: list[str]) -> list[str]:
        if not arguments and not context.resilient_parsing:
            if context.parent is None:
                click.echo(context.get_help())
                context.exit(0)
            names = ", ".join(self.list_commands(context))
            raise UserError(f"{context.command_path} needs a command: choose one of {names}")
        return super().parse_args(context, arguments)


def usage_message(error: click.ClickException) -> str:
    """The message for a mistake in options or arguments."""
    context: click.Context | None = getattr(error, "ctx", None)
    path = "heedful" if context is None else context.command_path
    see = f"see {path} --help"
    if isinstance(error, click.NoSuchOption):
        return f"unknown option {error.option_name} of {path}: {_nearest_option(error, context) or see}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_name(error.param)} is missing: {_choices(error.param) or see}"
    text = _lowered(error.message)
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"{_name(error.param)}: {text}{_nearest_choice(error.param, text) or f': {see}'}"
    return f"{text}: {see}"


def _lowered(text: str) -> str:
    """A sentence as a part of a longer one."""
    text = " ".join(text.split()).removesuffix(".")
    return text[:1].lower() + text[1:]


def _name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return (parameter.metavar or parameter.name or "").upper().strip("[].")


def _choices(parameter: click.Parameter) -> str:
    choices = getattr(parameter.type, "choices", None)
    return f"choose one of {', '.join(choices)}" if choices else ""


def _close_to(given: str, known: list[str]) -> list[str]:
    import difflib  # only for mistakes

    return difflib.get_close_matches(given, known, n=1)


def _nearest_choice(parameter: click.Parameter, text: str) -> str:
    """The choice closest to what the text quotes; the text itself names them all."""
    given = re.match("'(.*?)' ", text)
    if not given or not isinstance(parameter.type, click.Choice):
        return ""
    close = _close_to(given[1], [str(each) for each in parameter.type.choices])
    return f": did you mean {close[0]!r}?" if close else ""


def _nearest_option(error: click.NoSuchOption, context: click.Context | None) -> str:
    parameters = [] if context is None else context.command.get_params(context)
    names = [
        name for each in parameters if isinstance(each, click.Option) for name in (*each.opts, *each.secondary_opts)
    ]
    close = _close_to(error.option_name, names)
    if close:
        return f"did you mean {close[0]}?"
    takes_text = any(isinstance(each, click.Argument) and each.nargs == -1 for each in parameters)
    return (
        f"see {error.ctx.command_path} --help; a text that begins with - goes after --"
        if takes_text and error.ctx
        else ""
    )
