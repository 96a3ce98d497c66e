"""Where the processes that heedful starts look for Python modules: never in the current folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = {"PYTHONSAFEPATH": "1"}


@contextmanager
def safe_child_imports() -> Iterator[None]:
    """Keep processes started inside the block from importing from the current folder, which may be a model's."""
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
