"""A connection to a client, which is closed if the client does not do its part: send a head, read the answer."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any, Literal

from uvicorn.protocols.http.h11_impl import H11Protocol

from heedful.server.front.errors import UNAVAILABLE, ApiError
from heedful.server.settings import Limits

# Seconds from the first byte of a request (or from the beginning of the connection) to the end of its head.
PATIENCE = 20.0
# Bytes of an answer that a client must read per second, on top of the seconds that every request has.
SLOWEST_READING = 2**16


class Connection(H11Protocol):
    """The protocol of uvicorn, which by itself waits forever: silent clients would use up all sockets and memory.

    It is the pure Python one, which limits the size of heads.
    """

    limits = Limits()
    _closing: asyncio.TimerHandle | None = None
    _aborting: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    @classmethod
    def within(cls, limits: Limits) -> type[Connection]:
        """Connections of a server that has these limits."""
        return type(cls.__name__, (cls,), {"limits": limits})

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        # Anything unread counts, so each answer has its deadline.
        transport.set_write_buffer_limits(high=0)
        self._idle_since = self.loop.time()
        self._wait()
        if len(self.connections) > self.limits.connections:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Take some bytes of a head, or of a body, which has a limit of its own."""
        super().data_received(data)
        self._wait()

    def _should_upgrade(self) -> bool:
        """Stay with HTTP, whatever else a client asks for; uvicorn would log that libraries are missing."""
        return False

    def on_response_complete(self) -> None:
        """Note since when the connection has been idle."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client does not read as fast as the answer comes: it may take its time, but not forever."""
        super().pause_writing()
        if self._aborting is None:
            seconds = self.limits.seconds + self.transport.get_write_buffer_size() / SLOWEST_READING
            self._aborting = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read everything so far."""
        self._stop("_aborting")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop("_closing")
        self._stop("_aborting")
        super().connection_lost(exc)

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        if not self._idle:
            self._stop("_closing")
        elif self._closing is None:
            self._closing = self.loop.call_later(PATIENCE, self.transport.close)

    def _stop(self, timer: Literal["_closing", "_aborting"]) -> None:
        running: asyncio.TimerHandle | None = getattr(self, timer)
        if running is not None:
            running.cancel()
            setattr(self, timer, None)

    def _make_room(self) -> None:
        """Close an idle connection, the longest idle of the client that has the most; or else this one."""
        others = [each for each in self.connections if each is not self and isinstance(each, Connection)]
        idle = [each for each in others if each._idle and not each.transport.is_closing()]
        number = Counter(_address(each) for each in others)
        chosen = min(idle, key=lambda each: (-number[_address(each)], each._idle_since), default=None)
        if chosen is not None:
            chosen.transport.abort()
            return
        message = f"the server has {self.limits.connections} connections already, and all of them are in use"
        body = json.dumps(ApiError(UNAVAILABLE, message).body()).encode()
        head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
        self.transport.write(f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()


def _address(connection: Connection) -> str:
    return connection.client[0] if connection.client else ""
