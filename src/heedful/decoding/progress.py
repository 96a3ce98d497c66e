"""What can be seen of a sentence while it is decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class SentenceProgress(Protocol):
    """A sentence as it is right after a step."""

    @property
    def index(self) -> int:
        """The index of its request."""

    @property
    def tokens(self) -> list[int]:
        """All tokens of the best hypothesis so far, which may have ended."""

    @property
    def last(self) -> tuple[int, float]:
        """The last token of the best one that has not ended, and that token's log-probability."""

    def likeliest(self, count: int) -> list[tuple[int, float]]:
        """The likeliest tokens at the place of the last one, with their log-probabilities."""


# Called after each step that does not finish a sentence; if it returns False, the sentence is given up at once.
Watch = Callable[[SentenceProgress], bool]
