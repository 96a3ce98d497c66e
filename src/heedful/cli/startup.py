"""Starting quickly."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def imports_that_stay() -> Iterator[None]:
    """Keep the garbage collector from looking through what is imported here, which would take a quarter of a second."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main() -> None:
    """The command `heedful`."""
    with imports_that_stay():
        from heedful.cli.main import main as run
    run()
