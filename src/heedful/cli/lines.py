"""Lines of standard input, in groups, for commands that answer each line with one."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from heedful.data.text_files import BYTE_ORDER_MARK
from heedful.errors import UserError

READ_BYTES = 1 << 16


def input_lines() -> Iterator[tuple[int, list[str]]]:
    """The lines of standard input as they come, in groups, each with the number of its first line."""
    from heedful.line_translation import CHUNK_LINES, chunks

    # Unbuffered: a thread that waits in a buffered one keeps the interpreter from ending.
    read = partial(io.FileIO(sys.stdin.fileno(), closefd=False).read, READ_BYTES)
    first = 1
    for group in chunks(read, CHUNK_LINES):
        if group is None:
            continue
        if first == 1:
            group[0] = group[0].removeprefix(BYTE_ORDER_MARK)
        yield first, [_decoded(first + offset, line.removesuffix(b"\r")) for offset, line in enumerate(group)]
        first += len(group)


def _decoded(number: int, line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        click.echo(f"heedful: line {number} is not valid UTF-8: the bytes that are not are read as U+FFFD", err=True)
        return line.decode("utf-8", "replace")


@contextmanager
def remarks_on_lines(first: int) -> Iterator[None]:
    """Tell of texts that a pipeline warns about, by the number of their line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for each in caught:
        number = first + getattr(each.message, "index", 0)
        click.echo(f"heedful: line {number} {each.message}", err=True)


def answer_lines(answer: Callable[[list[str]], list[str]]) -> None:
    """Write one line for each line of standard input."""
    for first, lines in input_lines():
        with remarks_on_lines(first):
            answers = answer(lines)
        assert len(answers) == len(lines)
        sys.stdout.buffer.write("".join(line + "\n" for line in answers).encode("utf-8"))
        sys.stdout.buffer.flush()


def load_as(kind: type[Any], model: str, device: str, what: str) -> Any:
    """The model of a folder, which must be of that kind."""
    from heedful.pipelines.loading import load

    pipeline = load(model, device)
    if not isinstance(pipeline, kind):
        raise UserError(f"{model} holds no {what}: its task is {pipeline.config.task!r}")
    return pipeline
