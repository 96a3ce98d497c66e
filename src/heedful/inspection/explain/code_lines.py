"""The line of heedful's own code that computes something, found by its text."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import heedful


@dataclass(frozen=True)
class CodeLine:
    """A line of the package's code: its file, number and text."""

    file: str
    line: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """The line as plain data."""
        return {"file": self.file, "line": self.line, "text": self.text}


@cache
def code_line(place: Any, fragment: str) -> CodeLine:
    """The first line of a function or class that holds a fragment; a test makes sure that there is one."""
    lines, first = inspect.getsourcelines(place)
    file = Path(inspect.getsourcefile(place) or "").relative_to(Path(heedful.__file__).parent)
    for number, line in enumerate(lines, first):
        if fragment in line:
            return CodeLine(f"heedful/{file.as_posix()}", number, line.strip())
    raise AssertionError(f"{place} has no {fragment!r}")
