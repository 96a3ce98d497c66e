"""heedful trains, runs, looks into and serves Transformers."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

# Name -> module, from the stub beside this file. Imported when first used: `heedful --help` must not wait for torch.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_PLACES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+)", _STUB, re.MULTILINE)}

__all__ = ["__version__", *sorted(_PLACES)]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'heedful' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
