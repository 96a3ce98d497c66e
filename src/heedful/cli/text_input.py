"""The text that a command works on: arguments, a file or standard input, in the same way for every command."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import click

from heedful.cli.alike_remarks import alike_remarks
from heedful.cli.options import encoding_option
from heedful.errors import UserError
from heedful.text.encodings import as_utf8, check_encoding
from heedful.text.text_files import (
    BYTE_ORDER_MARK,
    OLD_LINE_ENDS,
    PACKED_BEGINNINGS,
    STANDARD_INPUT,
    looks_like_old_line_ends,
    unpacked_blocks,
)
from heedful.text.whole_files import one_file

READ_BYTES = 1 << 16
END_KEYS = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"


@dataclass(frozen=True)
class TextInput:
    """Where a command's text comes from: arguments, a file, or else standard input."""

    texts: tuple[str, ...] = ()
    file: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        check_encoding(self.encoding)
        if self.texts and self.file is not None:
            raise UserError("there is a text after the model, and --input too: give one of them")

    @property
    def is_given(self) -> bool:
        """Whether the command line says what to read."""
        return bool(self.texts) or self.file is not None

    @property
    def waits_for_a_terminal(self) -> bool:
        """Whether somebody would have to type the text."""
        return not self.texts and self.file in (None, STANDARD_INPUT) and sys.stdin is not None and sys.stdin.isatty()

    def reader(self, hint: str = "one text per line") -> Callable[[], bytes]:
        """A function that waits until there are bytes and returns those, and none at the end.

        An argument is one line: line breaks in it count as spaces.
        """
        if self.texts:
            self._tell_of_files()
            lines = (_bytes(text).replace(b"\n", b" ") + b"\n" for text in self.texts)
            return partial(next, lines, b"")
        if self.file is not None and self.file != STANDARD_INPUT:
            return partial(next, _told_of_line_ends(unpacked_blocks(one_file(self.file), self.encoding)), b"")
        if self.waits_for_a_terminal:
            click.echo(f"heedful: reading from the terminal: {hint}; {END_KEYS} ends", err=True)
        try:
            number = sys.stdin.fileno()
        except (AttributeError, OSError):  # there is no standard input
            return bytes
        # Unbuffered: a thread that waits in a buffered one keeps the interpreter from ending.
        read = partial(io.FileIO(number, closefd=False).read, READ_BYTES)
        blocks = _unpacked_already(iter(read, b""))
        return partial(next, _told_of_line_ends(as_utf8(blocks, "standard input", self.encoding)), b"")

    def whole_texts(self, hint: str) -> list[str]:
        """Each argument, or all of the file or of standard input as one text, without its last line end."""
        if self.texts:
            self._tell_of_files()
            return [_decoded(_bytes(text), f"text {number}", "UTF-8") for number, text in enumerate(self.texts, 1)]
        raw = b"".join(iter(self.reader(hint), b"")).removeprefix(BYTE_ORDER_MARK)
        raw = raw.replace(b"\r\n", b"\n").removesuffix(b"\n")
        return [_decoded(raw, "the input", self.encoding or "UTF-8")]

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """The lines as they come, in groups, each with the number of its first line."""
        from heedful.tasks.translation.line_input import chunks
        from heedful.tasks.translation.lines import CHUNK_LINES

        first = 1
        with alike_remarks(_tell) as told:
            for group in chunks(self.reader(), CHUNK_LINES):
                if group is None:
                    continue
                if first == 1:
                    group[0] = group[0].removeprefix(BYTE_ORDER_MARK)
                texts = [line.removesuffix(b"\r").decode("utf-8", "replace") for line in group]
                for number, (text, line) in enumerate(zip(texts, group, strict=True), first):
                    if "\ufffd" in text and text.encode("utf-8") != line.removesuffix(b"\r"):
                        told(f"line {number} {invalid_line(self.encoding)}")
                yield first, texts
                first += len(group)

    def _tell_of_files(self) -> None:
        for text in self.texts:
            if os.path.isfile(text):  # noqa: PTH113 (Path.is_file fails for what is too long for a name)
                click.echo(f"heedful: {text} is read as a text; --input {text} reads the file of that name", err=True)


def text_input(metavar: str = "[TEXT]...") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take texts after its model, `--input FILE` or standard input, as its argument `given`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_input(
            *arguments: Any, texts: tuple[str, ...], input_file: str | None, encoding: str | None, **options: Any
        ) -> None:
            command(*arguments, given=TextInput(texts, input_file, encoding), **options)

        help_text = "Read from a file (also .gz or .xz) instead of standard input."
        option = click.option("--input", "input_file", metavar="FILE", help=help_text)
        return click.argument("texts", nargs=-1, metavar=metavar)(option(encoding_option(with_input)))

    return decorate


def _bytes(text: str) -> bytes:
    """An argument as the shell gave it: its bytes need not be valid UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _unpacked_already(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks of standard input; compressed input is a UserError."""
    first = next(blocks, b"")
    for ending, beginning in PACKED_BEGINNINGS.items():
        if first.startswith(beginning):
            raise UserError(
                f"standard input is a compressed file ({ending}): decompress it, or name the file with --input"
            )
    if first:
        yield first
        yield from blocks


def _told_of_line_ends(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, and a hint where carriage returns alone seem to end the lines."""
    newlines = returns = 0
    for block in blocks:
        newlines, returns = newlines + block.count(b"\n"), returns + block.count(b"\r")
        yield block
    if looks_like_old_line_ends(newlines, returns):
        _tell(f"the input is one line, with {returns:,} carriage returns in it: {OLD_LINE_ENDS}")


def invalid_line(encoding: str | None) -> str:
    """What to say about a line that is not valid in its encoding."""
    hint = "" if encoding else "; --encoding names the encoding of the input"
    return f"is not valid {encoding or 'UTF-8'}: the bytes that are not are read as U+FFFD{hint}"


def _decoded(raw: bytes, what: str, encoding: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        _tell(f"{what} is not valid {encoding}: the bytes that are not are read as U+FFFD")
        return raw.decode("utf-8", "replace")


def _tell(text: str) -> None:
    click.echo(f"heedful: {text}", err=True)
