"""Names of files as users give them: one, or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def take_file_names(data: Any, *names: str) -> None:
    """Turn the fields of a frozen dataclass that hold files into tuples of strings: a string or a path is one file."""
    for name in names:
        given = getattr(data, name)
        files = (given,) if isinstance(given, str | Path) else given
        object.__setattr__(data, name, tuple(str(each) for each in files))
