"""The line of heedful's own code that computes something, found by its text."""

from __future__ import annotations

import ast
import inspect
import textwrap
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
    """The first line of code of a function or class that holds a fragment; a test makes sure that there is one."""
    lines, first = inspect.getsourcelines(place)
    file = Path(inspect.getsourcefile(place) or "").relative_to(Path(heedful.__file__).parent)
    for number, code in enumerate(code_alone(lines)):
        if fragment in code:
            return CodeLine(f"heedful/{file.as_posix()}", first + number, lines[number].strip())
    raise AssertionError(f"{place} has no {fragment!r}")


def code_alone(lines: list[str]) -> list[str]:
    """The lines of a function or class, empty where they are docstrings or comments."""
    found = [line.partition("  #")[0] for line in lines]
    for node in ast.walk(ast.parse(textwrap.dedent("".join(lines)))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            last = node.end_lineno or node.lineno
            found[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return found
