"""The lines of a stream of bytes as they come: in groups, without waiting for more than is there."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence

from heedful.errors import UserError
from heedful.machine.memory import memory_limit
from heedful.tasks.translation.recent_answers import InputLine
from heedful.text.text_files import BYTE_ORDER_MARK

# Seconds to wait for another line before translating those that are there.
PATIENCE = 0.01
# Bytes of memory for each byte of a line while it is translated (measured: 480), and bytes of a line to be checked.
BYTES_PER_BYTE, LONG_LINE = 500, 1 << 20

ReadBytes = Callable[[], bytes]


def chunks(read: ReadBytes, size: int) -> Iterator[list[bytes] | None]:
    """Lines in lists of up to `size`, without waiting for more than is there; None before each wait."""
    # A line, the end (None), or an error in reading.
    lines: queue.Queue[bytes | Exception | None] = queue.Queue(maxsize=4 * size)
    threading.Thread(target=_read_lines, args=(read, lines), daemon=True).start()
    line: bytes | Exception | None = b""
    while line is not None:
        try:
            line = lines.get(timeout=PATIENCE)
        except queue.Empty:
            yield None
            line = lines.get()
        chunk: list[bytes] = []
        while line is not None:
            if isinstance(line, Exception):
                raise line
            chunk.append(line)
            if len(chunk) == size:
                break
            try:
                line = lines.get(timeout=PATIENCE)
            except queue.Empty:
                break
        if chunk:
            yield chunk


def decoded(groups: Iterable[list[bytes] | None]) -> Iterator[list[InputLine] | None]:
    """Groups of lines as text, without a byte order mark and without carriage returns at their ends."""
    begins = True
    for lines in groups:
        if lines and begins:
            lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            begins = False
        yield None if lines is None else [_decoded_line(line.removesuffix(b"\r")) for line in lines]


def with_prefixes(
    groups: Iterable[list[InputLine] | None], prefixes: Sequence[str]
) -> Iterator[list[InputLine] | None]:
    """Groups of lines, each line with its own prefix; a different number of prefixes is a UserError."""
    count = 0
    for lines in groups:
        own = prefixes[count : count + len(lines or [])]
        count += len(lines or [])
        if lines is None:
            yield None
        elif len(own) == len(lines):  # otherwise the lines are only counted, for the error
            yield [line._replace(prefix=prefix) for line, prefix in zip(lines, own, strict=True)]
    if count != len(prefixes):
        raise UserError(
            f"lines to translate: {count:,}, but lines in --prefix-file: {len(prefixes):,}; each line needs its "
            "counterpart, which is blank where there is no prefix"
        )


def _decoded_line(raw: bytes) -> InputLine:
    try:
        return InputLine(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return InputLine(raw.decode("utf-8", "replace"), is_valid=False)


def _check_that_it_fits(size: int, number: int) -> None:
    """Raise a UserError for a line that is too long for the memory; it may not be all there yet, and never end."""
    if size > LONG_LINE and size > (longest := memory_limit() // BYTES_PER_BYTE):
        raise UserError(
            f"line {number} has more than {longest:,} bytes, too many for the memory: break it into several lines"
        )


def _read_lines(read: ReadBytes, lines: queue.Queue[bytes | Exception | None]) -> None:
    try:
        parts: list[bytes] = []  # of a line whose end has not come yet: joined once, however many there are
        number, size = 1, 0
        while block := read():
            first, *others = block.split(b"\n")
            parts.append(first)
            size += len(first)
            for piece in others:
                _check_that_it_fits(size, number)
                lines.put(b"".join(parts))
                parts, number, size = [piece], number + 1, len(piece)
            _check_that_it_fits(size, number)
        if rest := b"".join(parts):
            lines.put(rest)
        lines.put(None)
    except Exception as error:  # it is raised where the lines are taken
        lines.put(error)
