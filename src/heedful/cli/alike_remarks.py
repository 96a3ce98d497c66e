"""Reports remarks: of those that differ only in their numbers, the first few, and then how many more there were."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# For a file in which every line is odd, the first lines and the number of the others are enough.
MOST_ALIKE = 5
_NUMBER = re.compile(r"\d[\d,]*")


class AlikeRemarks:
    """Receives the remarks on one input."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._kinds: Counter[str] = Counter()

    def __call__(self, text: str) -> None:
        """Report a remark, or just count it."""
        kind = _NUMBER.sub("…", text)
        self._kinds[kind] += 1
        if self._kinds[kind] <= MOST_ALIKE:
            self._tell(text)

    def finish(self) -> None:
        """Report how many there were besides those that were reported."""
        for kind, count in self._kinds.items():
            if count > MOST_ALIKE:
                # Without numbers: with those of the first, it would look like a remark on that line again.
                which = f": {kind}" if len(self._kinds) > 1 else ""
                self._tell(f"... and {count - MOST_ALIKE:,} more like this{which}")


@contextmanager
def alike_remarks(tell: Callable[[str], None]) -> Iterator[AlikeRemarks]:
    """Receive the remarks of the block, which may be many."""
    remarks = AlikeRemarks(tell)
    yield remarks
    remarks.finish()
