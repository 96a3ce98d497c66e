"""How the answers to one part of a request travel back."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from heedful.errors import DamagedModelError, UserError
from heedful.machine.memory import out_of_memory
from heedful.server.messages import FAULT, Done, Failed, ModelRequest, Partial

Send = Callable[[Any], None]


class Reply:
    """Where the answers to one part of a request go."""

    def __init__(self, request: ModelRequest, send: Send) -> None:
        self.request, self.number, self.send = request, request.number, send
        self.remarks: list[tuple[int, str]] = []

    def partial(self, value: Any, replaces: bool = False) -> None:
        """Show something before the end."""
        self.send(Partial(self.number, value, replaces))

    def done(self, value: Any) -> None:
        """Give the result."""
        self.send(Done(self.number, value, self.remarks))

    def failed(self, error: Exception) -> None:
        """Say why there is no result; our own faults are written to the log, with the name of the request."""
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
        asked = f"request {self.request.name} ({self.request.verb} with {self.request.model})"
        print(f"heedful: {asked} failed: {what}", file=sys.stderr, flush=True)
