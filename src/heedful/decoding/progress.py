"""What is told of a sentence while it is decoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class SentenceProgress(Protocol):
    """What there is of a sentence right after a step: its best hypothesis so far."""

    @property
    def index(self) -> int:
        """The index of its request."""

    @property
    def tokens(self) -> list[int]:
        """All its tokens."""

    @property
    def last(self) -> tuple[int, float]:
        """Its last token, and that token's log-probability."""

    def likeliest(self, count: int) -> list[tuple[int, float]]:
        """The likeliest tokens in the place of the last one, with their log-probabilities."""


# Told of a sentence after each step with which it is not done; False gives it up there and then.
Watch = Callable[[SentenceProgress], bool]
