"""Where the processes that heedful starts look for Python modules: not in the current folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = {"PYTHONSAFEPATH": "1"}


@contextmanager
def safe_child_imports() -> Iterator[None]:
    """Keep Python files of the current folder, perhaps that of a model, out of the processes started meanwhile."""
    before = {name: os.environ.get(name) for name in SAFE_PATH}
    os.environ.update(SAFE_PATH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
