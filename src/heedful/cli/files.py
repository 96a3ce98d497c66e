"""Text files that commands read whole."""

from __future__ import annotations

from heedful.data.text_files import expand_files, read_lines
from heedful.errors import UserError


def read_texts(path: str) -> list[str]:
    """The lines of a text file (plain, .gz or .xz); bytes that are not UTF-8 become U+FFFD."""
    (file,) = expand_files([path])
    return [line.decode("utf-8", "replace") for line in read_lines(file)]


def read_aligned(source: str, target: str) -> tuple[list[str], list[str]]:
    """The lines of two files that must have equally many."""
    sources, targets = read_texts(source), read_texts(target)
    if len(sources) != len(targets):
        raise UserError(
            f"{source} has {len(sources):,} lines, but {target} has {len(targets):,}: "
            "each line needs its counterpart"
        )
    if not sources:
        raise UserError(f"{source} and {target} are empty")
    return sources, targets
