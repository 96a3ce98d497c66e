"""Answers that grow: server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from heedful.server.front.errors import ApiError

MEDIA_TYPE = "text/event-stream"


def event(data: Any, name: str | None = None) -> bytes:
    """One event as it is sent; JSON has no line breaks of its own."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode("utf-8", "replace")


class EventStream(Response):
    """Sends events as they come; when the client goes away, their source is closed."""

    media_type = MEDIA_TYPE

    def __init__(self, events: AsyncGenerator[bytes], first: bytes) -> None:
        super().__init__()
        del self.headers["content-length"]
        self.events, self.first = events, first

    @classmethod
    async def begin(cls, events: AsyncGenerator[bytes]) -> EventStream:
        """Wait for the first event: until then an error still has a status of its own."""
        return cls(events, await anext(events))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events."""
        async with aclosing(self.events) as events:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": self.first, "more_body": True})
            async for each in self._with_errors(events):
                await send({"type": "http.response.body", "body": each, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _with_errors(self, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """An error in the middle of a stream is its last event."""
        try:
            async for each in events:
                yield each
        except ApiError as error:
            yield event(error.body(), "error")
