"""The name of a request, by which an answer and the lines of a log find each other."""

from __future__ import annotations

import secrets
from contextvars import ContextVar

from heedful.server.front.errors import BROKEN, ApiError

# Of the request that the running task answers.
REQUEST: ContextVar[str] = ContextVar("request", default="")


def name_request() -> str:
    """Give the request that this task begins to answer a name."""
    name = secrets.token_hex(6)
    REQUEST.set(name)
    return name


def broken(message: str) -> ApiError:
    """The answer to a request that failed by a fault, with the name that it has in the log."""
    return ApiError(BROKEN, f"{message} (request {REQUEST.get()})")
