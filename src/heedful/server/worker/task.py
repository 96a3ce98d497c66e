"""One request that a worker is at, and the way of its answers."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from heedful.errors import DamagedModelError, UserError
from heedful.machine.memory import out_of_memory
from heedful.server.messages import FAULT, Done, Failed, Partial, Run

Send = Callable[[Any], None]


class Task(Protocol):
    """A request that is decoded step by step."""

    @property
    def begun(self) -> int:
        """How many of its texts were made ready."""

    def start(self) -> Iterator[int]:
        """Hand what is to be decoded to the engine, with pauses, and the characters made ready since the last one."""

    def cancel(self) -> None:
        """Nobody waits for it any more."""


class Reply:
    """Where the answers to one request go."""

    def __init__(self, number: int, send: Send, name: str = "a request") -> None:
        self.number, self.send, self.name = number, send, name
        self.remarks: list[tuple[int, str]] = []

    def partial(self, value: Any, replaces: bool = False) -> None:
        """Show something before the end."""
        self.send(Partial(self.number, value, replaces))

    def done(self, value: Any) -> None:
        """Give the result."""
        self.send(Done(self.number, value, self.remarks))

    def failed(self, error: Exception) -> None:
        """Say why there is no result; a fault of ours is told in the log, where its request is named."""
        if isinstance(error, DamagedModelError):
            self._log(f"{error}")
            self.send(Failed(self.number, str(error), mistake=False))
        elif isinstance(error, UserError):
            self.send(Failed(self.number, str(error), mistake=True))
        elif out_of_memory(error):
            self._log(f"memory ran out: {error}")
            self.send(Failed(self.number, "memory ran out: try again later, or with less at a time", mistake=False))
        else:
            self._log("".join(traceback.format_exception(error)))
            self.send(Failed(self.number, FAULT, mistake=False))

    def _log(self, what: str) -> None:
        print(f"heedful: {self.name} failed: {what}", file=sys.stderr, flush=True)


def name_of(run: Run) -> str:
    """A request as the log calls it."""
    return f"request {run.request} ({run.verb} with {run.model})"
