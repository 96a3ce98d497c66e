"""What a claim says about itself, without torch."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper that can be measured.

    `code` names what it is about, as in `layers/attention.py:Scoring`. It is measured by the function `measure` in the
    file of the same name in `claims/measured`.
    """

    name: str
    title: str
    sentence: str
    source: str
    method: str
    code: tuple[str, ...]

    @property
    def module(self) -> str:
        """The name of the module that measures it."""
        return f"heedful.claims.measured.{self.name.replace('-', '_')}"

    @property
    def command(self) -> str:
        """The command that measures this claim alone."""
        return f"heedful claims {self.name}"


@dataclass(frozen=True)
class CodePlace:
    """Some lines of heedful's code."""

    file: str
    first: int
    last: int
    text: str

    @property
    def shown(self) -> str:
        """The file and the lines, in the usual notation."""
        return f"src/heedful/{self.file}:{self.first}-{self.last}"


def find_code(reference: str) -> CodePlace:
    """The lines of a class or a function, or of a method, as in `layers/blocks.py:PostNorm.forward`."""
    file, _, path = reference.partition(":")
    text = (PACKAGE / file).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(text)
    for name in path.split("."):
        inner = (each for each in ast.iter_child_nodes(node) if getattr(each, "name", None) == name)
        node = next(inner)
    assert isinstance(node, ast.ClassDef | ast.FunctionDef) and node.end_lineno
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return CodePlace(file, first, node.end_lineno, "\n".join(lines))
