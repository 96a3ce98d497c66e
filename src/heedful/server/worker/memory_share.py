"""The memory of one worker, planned over all that it has under way."""

from __future__ import annotations

import math


class MemoryShare:
    """Bytes that a worker may plan to take; what is computed alone may take more, since nothing less can be done."""

    def __init__(self, total: float = math.inf) -> None:
        self.total, self.used = total, 0
        # Whether something larger waits, which is to get what becomes free.
        self.reserved = False

    def take(self, size: int) -> bool:
        """Take that much for one more sentence, if it is there."""
        if self.used and (self.reserved or self.used + size > self.total):
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Give back what was taken."""
        self.used -= size

    def has_room(self, size: int) -> bool:
        """Whether something that takes that much may be computed now; if not, it is the next to get what is freed."""
        self.reserved = bool(self.used) and self.used + size > self.total
        return not self.reserved
