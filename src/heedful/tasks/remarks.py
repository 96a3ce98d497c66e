"""Remarks of pipelines on their inputs: Python warnings for callers, plain text for whatever shows them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class TextWarning(UserWarning):
    """A remark on the text with that index; its words continue a sentence that begins with the text's name."""

    noun = "text"

    def __init__(self, index: int, remark: str) -> None:
        super().__init__(remark)
        self.index = index

    def __str__(self) -> str:
        return f"{self.noun} {self.index + 1} {self.args[0]}"


@contextmanager
def remarks() -> Iterator[list[tuple[int, str]]]:
    """Collects what pipelines warn about inside the block: the index of the input, and the remark on it."""
    found: list[tuple[int, str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield found
    messages = [each.message for each in caught if isinstance(each.message, Warning)]
    found += [(each.index if isinstance(each, TextWarning) else 0, str(each.args[0])) for each in messages]
