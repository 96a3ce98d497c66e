"""A file of answers, line by line, which gets its name when it is complete."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from heedful.cli.lines import tell
from heedful.cli.output_file import output_path
from heedful.files import replacing
from heedful.machine.signals import ending_signals

UNFINISHED = ".unfinished"


@contextmanager
def line_file(name: str, option: str) -> Iterator[BufferedIOBase]:
    """A file to write lines to, compressed if its name ends in .gz or .xz.

    If the work fails, the file that had the name before stays; if it is interrupted, finished lines stay beside it.
    """
    path = output_path(name, option, "out.txt")
    with _interrupted_by_signals(), replacing(path) as temporary:
        try:
            with _opened(temporary, path.suffix.lower()) as file:
                yield file
        except KeyboardInterrupt:
            if temporary.is_file() and temporary.stat().st_size:
                kept = path.with_name(path.name + UNFINISHED)
                temporary.replace(kept)
                tell(f"the lines that were finished are in {kept}")
            raise


def _opened(path: Path, suffix: str) -> BufferedIOBase:
    if suffix == ".gz":
        import gzip

        return gzip.open(path, "wb")
    if suffix == ".xz":
        import lzma

        return lzma.open(path, "wb")
    return path.open("wb")


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM, and the end of a terminal, interrupt the block as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.default_int_handler) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
