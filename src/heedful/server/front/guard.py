"""What every request passes: the key, the limit of its body, and the end of all work when its client is gone."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from heedful.server.front.errors import BUSY, SLOW_BODY, TOO_LARGE, UNAUTHORIZED, ApiError, try_again
from heedful.server.front.metrics import Metrics
from heedful.server.settings import ServerSettings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# What anyone may see: the page, which asks for the key, and what tells nothing of the models' work. LibreTranslate's
# clients send their key in the body, where `libretranslate.py` looks for it.
OPEN_PATHS = ("/", "/healthz", "/openapi.json", "/languages", "/translate")
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
# Bodies that are held at a time, in the size of the largest that there may be.
LARGEST_BODIES = 16
# How requests are counted whose client did not wait for the answer.
CLIENT_GONE = 499


class Keys:
    """The API keys, compared in a time that does not tell how much of a guess was right."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.digests = [_digest(key) for key in keys]

    def accept(self, guess: str) -> bool:
        """Whether that is one of the keys, or none is needed."""
        digest = _digest(guess)
        found = [hmac.compare_digest(digest, each) for each in self.digests]
        return any(found) or not found


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


class Guard:
    """Stands before the application."""

    def __init__(self, app: App, settings: ServerSettings, metrics: Metrics) -> None:
        self.app, self.limits, self.metrics = app, settings.limits, metrics
        self.keys = Keys(settings.keys)
        self.held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status, body = time.perf_counter(), CLIENT_GONE, bytearray()
        if scope.get("method") == "HEAD":  # the server leaves the body away
            scope = {**scope, "method": "GET"}

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(each for each in ENCODED_HEADERS if each[0] not in present),
                ]
            await send(message)

        try:
            self._check_key(scope)
            if await self._read(scope, receive, body):
                await self._run(scope, bytes(body), receive, send_on)
        except ApiError as error:
            await send_error(error, send_on)
        finally:
            self.held -= len(body)
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.observe(route, status, time.perf_counter() - begin)

    def _check_key(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        given = headers.get(b"x-api-key", b"").decode("utf-8", "surrogateescape")
        scheme, _, token = headers.get(b"authorization", b"").decode("utf-8", "surrogateescape").partition(" ")
        if scheme.lower() == "bearer":
            given = token.strip()
        authorized = self.keys.accept(given)
        scope.setdefault("state", {})["authorized"] = authorized
        if not authorized and scope["path"] not in OPEN_PATHS and not scope["path"].startswith("/static/"):
            raise unauthorized()

    async def _read(self, scope: Scope, receive: Receive, body: bytearray) -> bool:
        """Read the whole body, unless the client goes; one that is too large is not read to its end."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self.limits.body_bytes:
            raise self._too_large()
        try:
            async with asyncio.timeout(self.limits.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return False
                    part = message.get("body", b"")
                    body += part
                    self.held += len(part)
                    if len(body) > self.limits.body_bytes:
                        raise self._too_large()
                    if self.held > LARGEST_BODIES * self.limits.body_bytes:
                        raise try_again(BUSY, "other requests are so large that there is no room for this one now")
                    if not message.get("more_body", False):
                        return True
        except TimeoutError:
            raise ApiError(SLOW_BODY, "the request did not arrive in time", {"Connection": "close"}) from None

    def _too_large(self) -> ApiError:
        message = f"the request is larger than {self.limits.body_bytes} bytes, which is all that the server takes"
        return ApiError(TOO_LARGE, message, {"Connection": "close"})

    async def _run(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Run the application as long as there is someone to answer."""
        given = asyncio.Event()
        forever = asyncio.Event()

        async def receive_again() -> Message:
            if given.is_set():
                await forever.wait()  # this task is cancelled when the client goes
            given.set()
            return {"type": "http.request", "body": body, "more_body": False}

        async def leave() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        answering = asyncio.ensure_future(self.app(scope, receive_again, send))
        leaving = asyncio.ensure_future(leave())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            # At its deadline it cancels itself, if it waits for a client that does not read.
            if answering.done() and not answering.cancelled():
                answering.result()
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)


def unauthorized() -> ApiError:
    """The answer to a request without the right key."""
    message = "the API key is missing or wrong: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`"
    return ApiError(UNAUTHORIZED, message, {"WWW-Authenticate": "Bearer"})


async def send_error(error: ApiError, send: Send) -> None:
    """Answer with an error."""
    body = json.dumps(error.body()).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **error.headers}
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.kind.status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
