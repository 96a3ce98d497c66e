"""Public names of a package that are imported when they are first used, listed once, in a stub beside it.

`heedful --help` must not wait for torch, and type checkers must know the names all the same: they read the stub.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.machine.torch_needed import needs_torch

LINE = re.compile(r"^from (\S+) import (\w+) as (\w+)", re.MULTILINE)


def lazy_names(file: str, package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """The public names in the stub of a package's `__init__.py`, the `__getattr__` that imports them, and the `__dir__`
    that lists them.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    places = {public: (module, name) for module, name, public in LINE.findall(stub)}

    def get(public: str) -> Any:
        if public not in places:
            raise AttributeError(f"module {package!r} has no attribute {public!r}")
        module, name = places[public]
        if module == package:  # a part of the package, as in `heedful.layers`
            return importlib.import_module(f"{package}.{name}")
        with needs_torch(f"{package}.{public}"):
            return getattr(importlib.import_module(module), name)

    names = sorted(places)
    return names, get, names.copy
