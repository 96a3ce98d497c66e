"""Reports remarks: of those that differ only in their numbers, the first few, and then how many more there were."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# For a file in which every line is odd, the first lines and the number of the others are enough.
MOST_ALIKE = 5
_NUMBER = re.compile(r"\d[\d,]*")


class AlikeRemarks:
    """Receives the remarks on one input."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._kinds: dict[str, tuple[str, int]] = {}

    def __call__(self, text: str) -> None:
        """Report a remark, or just count it."""
        kind = _NUMBER.sub("0", text)
        first, count = self._kinds.get(kind, (text, 0))
        self._kinds[kind] = first, count + 1
        if count < MOST_ALIKE:
            self._tell(text)

    def finish(self) -> None:
        """Report how many there were besides those that were reported."""
        for first, count in self._kinds.values():
            if count > MOST_ALIKE:
                self._tell(f"... and {count - MOST_ALIKE:,} more like this: {first}")


@contextmanager
def alike_remarks(tell: Callable[[str], None]) -> Iterator[AlikeRemarks]:
    """Receive the remarks of the block, which may be many."""
    remarks = AlikeRemarks(tell)
    yield remarks
    remarks.finish()
