"""One request that a worker is at, and the way of its answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from heedful.errors import UserError
from heedful.memory import out_of_memory
from heedful.server.messages import Done, Failed, Partial

Send = Callable[[Any], None]


@contextmanager
def remarks() -> Iterator[list[tuple[int, str]]]:
    """What pipelines warn about meanwhile: the place of the text, and what is to be said of it."""
    found: list[tuple[int, str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield found
    found += [(getattr(each.message, "index", 0), str(each.message)) for each in caught]


class Task(Protocol):
    """A request that is decoded step by step."""

    def start(self) -> None:
        """Hand what is to be decoded to the engine."""

    def cancel(self) -> None:
        """Nobody waits for it any more."""


class Reply:
    """Where the answers to one request go."""

    def __init__(self, number: int, send: Send) -> None:
        self.number, self.send = number, send
        self.remarks: list[tuple[int, str]] = []

    def partial(self, value: Any, replaces: bool = False) -> None:
        """Show something before the end."""
        self.send(Partial(self.number, value, replaces))

    def done(self, value: Any) -> None:
        """Give the result."""
        self.send(Done(self.number, value, self.remarks))

    def failed(self, error: Exception) -> None:
        """Say why there is no result."""
        if isinstance(error, UserError):
            self.send(Failed(self.number, str(error), mistake=True))
        elif out_of_memory(error):
            self.send(Failed(self.number, "memory ran out: try again later, or with less at a time", mistake=False))
        else:
            self.send(Failed(self.number, f"{type(error).__name__}: {error}", mistake=False))
