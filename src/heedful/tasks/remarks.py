"""What pipelines remark on their inputs: Python warnings for who holds a pipeline, plain text for who shows them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class TextWarning(UserWarning):
    """A remark on the text of that index, of several: it goes on after the text's name."""

    noun = "text"

    def __init__(self, index: int, remark: str) -> None:
        super().__init__(remark)
        self.index = index

    def __str__(self) -> str:
        return f"{self.noun} {self.index + 1} {self.args[0]}"


@contextmanager
def remarks() -> Iterator[list[tuple[int, str]]]:
    """What pipelines warn about meanwhile: the place of the input, and what is to be said of it."""
    found: list[tuple[int, str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield found
    messages = [each.message for each in caught if isinstance(each.message, Warning)]
    found += [(each.index if isinstance(each, TextWarning) else 0, str(each.args[0])) for each in messages]
