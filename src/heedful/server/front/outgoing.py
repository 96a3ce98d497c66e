"""How an answer gets to its client: headers that all answers have, and an orderly end where a body was not read."""

from __future__ import annotations

import asyncio
import json

from starlette.types import Message, Receive, Send

from heedful.server.front.errors import ApiError

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
ENCODED_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
# The status under which requests are counted whose client did not wait for the answer.
CLIENT_GONE = 499
# How long and how much a refused client may go on sending; otherwise it would not get to read the answer.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**20


class Outgoing:
    """Sends the answer to one request, whose body may be partly unread."""

    def __init__(self, name: str, receive: Receive, send: Send, unread: bool) -> None:
        self.name, self.receive, self.to_client, self.unread = name, receive, send, unread
        self.status = CLIENT_GONE

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = [*ENCODED_HEADERS, (b"x-request-id", self.name.encode())]
            if self.unread:
                own.append((b"connection", b"close"))
            present = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *(each for each in own if each[0] not in present)]
        elif self.unread and not message.get("more_body", False):
            await self.to_client({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self.to_client(message)

    async def _linger(self) -> None:
        """Receive what the client still sends, and forget it."""
        left = LINGER_BYTES
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while left > 0:
                    message = await self.receive()
                    left -= len(message.get("body", b""))
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return

    async def send_error(self, error: ApiError) -> None:
        """Answer with an error."""
        body = json.dumps(error.body()).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **error.headers}
        encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": error.kind.status, "headers": encoded})
        await self.send({"type": "http.response.body", "body": body})
