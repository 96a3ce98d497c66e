"""Commands that answer each line with one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from heedful.cli.alike_remarks import alike_remarks
from heedful.cli.text_input import TextInput
from heedful.errors import UserError
from heedful.tasks.computing import Computing
from heedful.tasks.remarks import remarks

# What a file's name may hold that would not fit on a line of text.
_NOT_SHOWN = re.compile(r"[\r\n\udc80-\udcff]")


def tell(text: str) -> None:
    """Write a message of heedful's to standard error, on one line, whatever the names of files in it hold."""
    click.echo(f"heedful: {_NOT_SHOWN.sub(_escaped, text)}", err=True)


def _escaped(match: re.Match[str]) -> str:
    r"""A line break as \n, and a byte that is not UTF-8, for which Python has half a character, as \xff."""
    character = match[0]
    return repr(character)[1:-1] if character.isascii() else f"\\x{ord(character) - 0xDC00:02x}"


@contextmanager
def remarks_on_lines(first: int, told: Callable[[str], None]) -> Iterator[None]:
    """Report the texts that a pipeline warns about, by their line numbers."""
    with remarks() as found:
        yield
    for place, text in found:
        told(f"line {first + place} {text}")


def answer_lines(given: TextInput, answer: Callable[[int, list[str]], list[str]], lines_for_each: int = 1) -> None:
    """Write the answer to each line; `answer` takes the number of the first of some lines, and the lines."""
    with alike_remarks(tell) as told:
        for first, lines in given.lines():
            with remarks_on_lines(first, told):
                answers = answer(first, lines)
            assert len(answers) == len(lines) * lines_for_each
            sys.stdout.buffer.write("".join(line + "\n" for line in answers).encode("utf-8"))
            sys.stdout.buffer.flush()


def load_as(kind: type[Any], model: str, computing: Computing, what: str) -> Any:
    """The model of a folder, which must be of that kind."""
    from heedful.tasks.loading import load_with

    pipeline = load_with(model, computing)
    if not isinstance(pipeline, kind):
        raise UserError(f"{model} holds no {what}: its task is {pipeline.config.task!r}")
    return pipeline
