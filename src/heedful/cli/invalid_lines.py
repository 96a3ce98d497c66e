"""Tells of lines that are not valid in their encoding: of the first few, and at the end how many there were."""

from __future__ import annotations

from collections.abc import Callable

# Lines that are named; of others, as of a file in another encoding, the number is enough.
MOST_NAMED = 3


class InvalidLines:
    """Counts the invalid lines of one input, and reports them."""

    def __init__(self, tell: Callable[[str], None], encoding: str | None) -> None:
        self._tell = tell
        self._encoding = encoding or "UTF-8"
        self._count = 0

    def look(self, number: int) -> None:
        """Take in the number of a line that is not valid."""
        self._count += 1
        if self._count <= MOST_NAMED:
            hint = "; --encoding names the encoding of the input" if self._count == 1 else ""
            self._tell(f"line {number} is not valid {self._encoding}: the bytes that are not are read as U+FFFD{hint}")

    def finish(self) -> None:
        """Tell how many there were besides those that were named."""
        if self._count > MOST_NAMED:
            more = self._count - MOST_NAMED
            self._tell(f"... and {more:,} more line{'s are' if more > 1 else ' is'} not valid {self._encoding}")
