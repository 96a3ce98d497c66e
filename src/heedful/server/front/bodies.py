"""Reading bodies: how large they may be, in all and per client, how fast they must come, how many values they have."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Receive

from heedful.server.front.errors import BUSY, INVALID, SLOW_BODY, TOO_LARGE, ApiError, try_again
from heedful.server.settings import Limits

# How much is held at a time, in units of the largest body allowed: in all, for one client, and for all clients together
# that have not shown a key.
LARGEST_BODIES, OF_ONE_CLIENT, OF_STRANGERS = 16, 4, 2
STRANGERS = "strangers"
# Seconds within which more of a body must come.
STALL_SECONDS = 10.0
# JSON values in a body: while it parsed millions of them, the server would answer nobody for seconds.
MOST_VALUES = 2**17
# Digits of a declared length that is worth parsing.
MOST_DIGITS = 18


class Bodies:
    """The bodies held at present, in bytes per client."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held: Counter[str] = Counter()

    @contextmanager
    def body(self, client: str) -> Iterator[Body]:
        """A body from a client, which is released at the end."""
        body = Body(self, client)
        try:
            yield body
        finally:
            self.held[client] -= body.size
            if not self.held[client]:
                del self.held[client]

    def take(self, client: str, size: int) -> None:
        """Count some more bytes from a client, if there is room for them."""
        self.held[client] += size
        share = OF_STRANGERS if client == STRANGERS else OF_ONE_CLIENT
        if self.held[client] > share * self.limits.body_bytes:
            raise try_again(BUSY, "this client's requests under way are so large that there is no room for one more")
        if self.held.total() > LARGEST_BODIES * self.limits.body_bytes:
            raise try_again(BUSY, "other requests are so large that there is no room for this one now")


class Body:
    """What has arrived of a body."""

    def __init__(self, bodies: Bodies, client: str) -> None:
        self.bodies, self.client, self.limits = bodies, client, bodies.limits
        self.size = 0

    async def read(self, receive: Receive, declared: bytes, is_json: bool) -> bytes | None:
        """The whole body, or None if the client goes away; one that is too large is not read to its end."""
        size = declared.lstrip(b"0")
        if size.isdigit() and (len(size) > MOST_DIGITS or int(size) > self.limits.body_bytes):
            raise self._too_large()
        values, parts = ValueCounter() if is_json else None, []
        try:
            async with asyncio.timeout(self.limits.seconds):
                while True:
                    async with asyncio.timeout(min(STALL_SECONDS, self.limits.seconds)):
                        message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    part = message.get("body", b"")
                    self._take(part)
                    parts.append(part)
                    if values is not None:
                        values.take(part)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise ApiError(SLOW_BODY, "the request did not arrive in time") from None

    def _take(self, part: bytes) -> None:
        self.size += len(part)
        self.bodies.take(self.client, len(part))
        if self.size > self.limits.body_bytes:
            raise self._too_large()

    def _too_large(self) -> ApiError:
        message = f"the request is larger than {self.limits.body_bytes} bytes, which is all that the server takes"
        return ApiError(TOO_LARGE, message)


class ValueCounter:
    """Counts the values of JSON as it arrives, by the commas and opening brackets outside strings."""

    def __init__(self) -> None:
        self.values, self.in_string, self.escape = 0, False, b""

    def take(self, part: bytes) -> None:
        """Look at some more bytes; too many values are an error."""
        part = self.escape + part
        self.escape = b""
        if b"\\" in part:
            part = part.replace(b"\\\\", b"")
            if part.endswith(b"\\"):  # what it escapes comes with the next part
                part, self.escape = part[:-1], b"\\"
            part = part.replace(b'\\"', b"")
        pieces = part.split(b'"')
        outside = b"".join(pieces[1 if self.in_string else 0 :: 2])
        self.in_string ^= len(pieces) % 2 == 0
        self.values += sum(outside.count(mark) for mark in (b",", b"[", b"{"))
        if self.values > MOST_VALUES:
            raise ApiError(INVALID, f"the body has more than {MOST_VALUES:,} values: send fewer texts at a time")
