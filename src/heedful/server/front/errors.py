"""Errors that clients see, as JSON with an HTTP status, and the name of a request, by which a fault is found."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A kind of error: its status, its name, and when it occurs."""

    status: int
    name: str
    meaning: str


# Status -> the kind of error that has it.
KINDS: dict[int, Kind] = {}


def _kind(status: int, name: str, meaning: str) -> Kind:
    """Make a kind of error, and enter it in `KINDS`."""
    KINDS[status] = Kind(status, name, meaning)
    return KINDS[status]


BAD_REQUEST = _kind(400, "bad_request", "The request is well-formed, but what it asks for cannot be done.")
UNAUTHORIZED = _kind(401, "unauthorized", "The API key is missing or wrong.")
FORBIDDEN = _kind(403, "forbidden", "The request is for another host, or was sent by another site's page.")
NOT_FOUND = _kind(404, "not_found", "There is no such model, or no such page.")
NOT_ALLOWED = _kind(405, "method_not_allowed", "The page is there, but not with this method.")
SLOW_BODY = _kind(408, "request_timeout", "The request did not arrive in time.")
TOO_LARGE = _kind(413, "too_large", "The request has more bytes than the server takes.")
UNSUPPORTED = _kind(415, "unsupported_media_type", "The body is of a kind that is not read here.")
INVALID = _kind(422, "invalid_request", "The request does not fit its description.")
BUSY = _kind(429, "too_many_requests", "Too much is waiting already: try again after `Retry-After` seconds.")
BROKEN = _kind(500, "internal_error", "A fault of the server's.")
UNAVAILABLE = _kind(503, "unavailable", "The server is shutting down, or lost the worker: try again.")
TIMEOUT = _kind(504, "timeout", "The answer was not there in time.")

# Characters of a message, which may quote what a client sent.
LONGEST_MESSAGE = 2000


@dataclass
class ApiError(Exception):
    """An error to answer a request with."""

    kind: Kind
    message: str
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.message) > LONGEST_MESSAGE:
            self.message = f"{self.message[:LONGEST_MESSAGE]}..."

    def body(self) -> dict[str, dict[str, str]]:
        """What the client reads."""
        return {"error": {"type": self.kind.name, "message": self.message}}


def misfits(errors: Sequence[Any], skip: int = 0) -> str:
    """The first few things that do not fit, and where, less the first `skip` parts of each place; not what was sent."""
    found = [f"{_place(each['loc'][skip:])}: {each['msg']}" for each in errors[:5]]
    return "; ".join(dict.fromkeys(found))


def _place(location: Iterable[str | int]) -> str:
    """Where in the body: names and numbers; which of several forms was tried helps nobody."""
    parts = [str(part) for part in location if isinstance(part, int) or part.isidentifier()]
    names = [part for part in parts if part[:1].islower() or part.isdigit()]
    return ".".join(part for part in names if part not in ("str", "int")) or "body"


# The name of the request that the running task answers; it links the answer with the lines of the log.
REQUEST: ContextVar[str] = ContextVar("request", default="")


def name_request() -> str:
    """Name the request that this task begins to answer."""
    name = secrets.token_hex(6)
    REQUEST.set(name)
    return name


def broken(message: str) -> ApiError:
    """The answer to a request that failed through a fault, with its name in the log."""
    return ApiError(BROKEN, f"{message} (request {REQUEST.get()})")


def try_again(kind: Kind, message: str) -> ApiError:
    """An error that will pass."""
    return ApiError(kind, message, {"Retry-After": "1"})
