"""Public names of a package that are imported when they are first used, listed once, in a stub beside it.

`heedful --help` must not wait for torch, and type checkers must know the names all the same: they read the stub.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_names(file: str, package: str) -> tuple[list[str], Callable[[str], Any]]:
    """The public names in the stub of a package's `__init__.py`, and the `__getattr__` that imports them."""
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    places = {name: module for module, name in re.findall(r"^from (\S+) import (\w+)", stub, re.MULTILINE)}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(places[name]), name)

    return sorted(places), get
