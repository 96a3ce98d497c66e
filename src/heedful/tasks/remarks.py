"""What pipelines remark on their inputs: Python warnings for who holds a pipeline, plain text for who shows them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def remarks() -> Iterator[list[tuple[int, str]]]:
    """What pipelines warn about meanwhile: the place of the input, and what is to be said of it."""
    found: list[tuple[int, str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield found
    messages = [each.message for each in caught if isinstance(each.message, Warning)]
    found += [(getattr(message, "index", 0), str(message.args[0])) for message in messages]
