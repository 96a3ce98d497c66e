"""The name of a request, by which an answer and the lines of a log find each other."""

from __future__ import annotations

import secrets
from contextvars import ContextVar

# Of the request that the running task answers.
REQUEST: ContextVar[str] = ContextVar("request", default="")


def name_request() -> str:
    """Give the request that this task begins to answer a name."""
    name = secrets.token_hex(6)
    REQUEST.set(name)
    return name
