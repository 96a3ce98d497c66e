"""Where claims are measured: what they share, how much they may do, and what is kept to do nothing twice."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from heedful.claims.claim import PACKAGE, Claim
from heedful.files import write_file

Value = TypeVar("Value")
# The code that a measurement uses, besides its own file: a change there makes results stale.
SHARED_SOURCES = ("claims/learning", "claims/evidence.py", "claims/workbench.py", "layers", "models", "settings")


FOLLOWED = ("heedful.claims.measured", "heedful.prepared", "heedful.tasks")


def fingerprint(claim: Claim | None, quick: bool) -> str:
    """A hash of the code that a claim's result depends on, or, without a claim, of the code that all claims share."""
    from importlib.metadata import version

    digest = hashlib.sha256(f"{version('torch')} {quick}".encode())
    files = [file for place in SHARED_SOURCES for file in _files(PACKAGE / place)]
    if claim is not None:
        files += sorted(sources_behind(PACKAGE / f"claims/measured/{claim.module.rpartition('.')[2]}.py"))
    for file in files:
        digest.update(what_runs(file.read_text(encoding="utf-8")))
    return digest.hexdigest()[:16]


@cache
def what_runs(source: str) -> bytes:
    """A hash of a file's code, which comments, docstrings and layout do not change."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
    return hashlib.sha256(ast.dump(tree).encode()).digest()


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is nothing but a string, as docstrings are."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def sources_behind(file: Path) -> set[Path]:
    """A measurement's own file, and the files of other measurements, of tasks and of prepared data that it imports."""
    found, waiting = {file}, [file]
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not node.module or not node.module.startswith(FOLLOWED):
                continue
            module = PACKAGE.joinpath(*node.module.split(".")[1:])
            for path in (module.with_suffix(".py"), *(module / f"{each.name}.py" for each in node.names)):
                if path.is_file() and path not in found:
                    found.add(path)
                    waiting.append(path)
    return found


class Shelf:
    """Keeps values, each in a file named by a hash of what it was made from; being killed loses at most one."""

    def __init__(self, folder: Path, made_by: str) -> None:
        self.folder, self.made_by = folder, made_by

    def path(self, kind: str, made_from: Any, suffix: str) -> Path:
        """Where something is kept."""
        content = json.dumps([self.made_by, made_from], sort_keys=True)
        return self.folder / f"{kind}-{hashlib.sha256(content.encode()).hexdigest()[:16]}{suffix}"

    def value(self, kind: str, made_from: Any, make: Callable[[], Value]) -> Value:
        """A value that JSON can hold: the kept one, or a new one, which is then kept."""
        path = self.path(kind, made_from, ".json")
        if path.is_file():
            kept: Value = json.loads(path.read_text(encoding="utf-8"))
            return kept
        made = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(made, allow_nan=False))
        return made


@dataclass(frozen=True)
class Workbench:
    """What a measurement gets: `own` keeps its own values, `shared` those that claims have in common."""

    quick: bool
    own: Shelf
    shared: Shelf
    tell: Callable[[str], None]

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of the runs: always these, whatever the outcome."""
        return (1,) if self.quick else (1, 2, 3)

    def choose(self, quick: Value, full: Value) -> Value:
        """The setting for a quick measurement, or for a full one."""
        return quick if self.quick else full


def workbench(claim: Claim, folder: Path, quick: bool, tell: Callable[[str], None]) -> Workbench:
    """The workbench of a claim in a work folder."""
    kept = folder / "kept"
    own = Shelf(kept, f"{claim.name} {fingerprint(claim, quick)}")
    return Workbench(quick, own, Shelf(kept, fingerprint(None, False)), tell)
