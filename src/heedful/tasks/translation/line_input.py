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
# Lines of this many bytes are translated at a time, however few they are.
CHUNK_BYTES = 1 << 20
# Bytes that are read ahead, and what a line takes besides its own.
BYTES_AHEAD, BYTES_PER_LINE = 4 * CHUNK_BYTES, 64

ReadBytes = Callable[[], bytes]


class _Lines(queue.Queue[bytes | Exception | None]):
    """Lines, the end (None), or an error in reading; the size of the queue is that of what it holds, in bytes."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self.bytes = 0

    def _qsize(self) -> int:
        return self.bytes

    def _put(self, item: bytes | Exception | None) -> None:
        super()._put(item)
        self.bytes += _room_of(item)

    def _get(self) -> bytes | Exception | None:
        item = super()._get()
        self.bytes -= _room_of(item)
        return item


def _room_of(item: bytes | Exception | None) -> int:
    return BYTES_PER_LINE + (len(item) if isinstance(item, bytes) else 0)


def chunks(read: ReadBytes, size: int) -> Iterator[list[bytes] | None]:
    """Lines in lists of up to `size`, without waiting for more than is there; None before each wait.

    A list also ends with the line that makes it `CHUNK_BYTES` long.
    """
    lines = _Lines(maxsize=BYTES_AHEAD)
    threading.Thread(target=_read_lines, args=(read, lines), daemon=True).start()
    line: bytes | Exception | None = b""
    while line is not None:
        try:
            line = lines.get(timeout=PATIENCE)
        except queue.Empty:
            yield None
            line = lines.get()
        chunk: list[bytes] = []
        held = 0
        while line is not None:
            if isinstance(line, Exception):
                raise line
            chunk.append(line)
            held += len(line)
            if len(chunk) == size or held >= CHUNK_BYTES:
                break
            try:
                line = lines.get(timeout=PATIENCE)
            except queue.Empty:
                break
        if chunk:
            yield chunk


def in_groups(texts: Iterable[str], size: int) -> Iterator[list[InputLine]]:
    """Texts in lists that end where those of `chunks` do."""
    group: list[InputLine] = []
    held = 0
    for text in texts:
        group.append(InputLine(text))
        held += len(text.encode("utf-8", "replace"))
        if len(group) == size or held >= CHUNK_BYTES:
            yield group
            group, held = [], 0
    if group:
        yield group


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


def _read_lines(read: ReadBytes, lines: _Lines) -> None:
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
