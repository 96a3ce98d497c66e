"""What every request passes: checks of host, key and body, and the end of all work when its client is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.server.front.bodies import STRANGERS, Bodies
from heedful.server.front.errors import BAD_REQUEST, ApiError, name_request
from heedful.server.front.hosts import Hosts
from heedful.server.front.keys import Keys, key_in, unauthorized
from heedful.server.front.metrics import Metrics
from heedful.server.front.outgoing import Outgoing
from heedful.server.settings import ServerSettings

# What anyone may see: the page, which asks for the key, and what reveals nothing of the models' work.
OPEN_PATHS = ("/", "/healthz", "/openapi.json", "/languages")
# LibreTranslate's clients send their key in the body, where `libretranslate.py` looks for it.
KEY_IN_BODY = "/translate"
FORM = b"application/x-www-form-urlencoded"


class Guard:
    """Stands in front of the application, which takes bodies at the paths in `posts`, and nowhere else."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics, posts: Container[str]) -> None:
        self.app, self.metrics, self.posts = app, metrics, posts
        self.keys, self.hosts = Keys(settings.keys), Hosts(settings.address, settings.hosts)
        self.bodies = Bodies(settings.limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, headers = time.perf_counter(), dict(scope["headers"])
        unread = b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
        outgoing = Outgoing(name_request(), receive, send, unread)
        if scope.get("method") == "HEAD":  # the server leaves out the body
            scope = {**scope, "method": "GET"}
        try:
            if b"transfer-encoding" in headers and b"content-length" in headers:  # RFC 9112, section 6.1
                raise ApiError(BAD_REQUEST, "send Content-Length or Transfer-Encoding: with both, a body has two ends")
            self.hosts.check(scope["method"], headers)
            client = self._client(scope, headers)
            if scope["method"] != "GET" and scope["path"] in self.posts:
                await self._read_and_run(scope, client, headers, outgoing)
            elif unread:
                await self.app(scope, _nothing, outgoing.send)
            else:
                await self._run(scope, b"", outgoing)
        except ApiError as error:
            await outgoing.send_error(error)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.observe(route, outgoing.status, time.perf_counter() - begin)

    def _client(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        """Who sent a request, by key or else by address; without the right key it is refused, unless anyone may ask."""
        key, path = key_in(headers), scope["path"]
        authorized = self.keys.accept(key)
        scope.setdefault("state", {})["authorized"] = authorized
        if not authorized:
            if path not in (*OPEN_PATHS, KEY_IN_BODY) and not path.startswith("/static/"):
                raise unauthorized()
            return STRANGERS
        return f"key {key}" if self.keys.digests else f"address {(scope.get('client') or ('',))[0]}"

    async def _read_and_run(
        self, scope: Scope, client: str, headers: Mapping[bytes, bytes], outgoing: Outgoing
    ) -> None:
        is_json = not headers.get(b"content-type", b"").lower().startswith(FORM)
        with self.bodies.body(client) as body:
            content = await body.read(outgoing.receive, headers.get(b"content-length", b""), is_json)
            if content is not None:
                outgoing.unread = False
                await self._run(scope, content, outgoing)

    async def _run(self, scope: Scope, body: bytes, outgoing: Outgoing) -> None:
        """Run the application as long as there is someone to answer."""
        given = asyncio.Event()
        forever = asyncio.Event()

        async def receive_again() -> Message:
            if given.is_set():
                await forever.wait()  # this task is cancelled when the client goes
            given.set()
            return {"type": "http.request", "body": body, "more_body": False}

        async def leave() -> None:
            while (await outgoing.receive())["type"] != "http.disconnect":
                pass

        answering = asyncio.ensure_future(self.app(scope, receive_again, outgoing.send))
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


async def _nothing() -> Message:
    """A body that is not read."""
    return {"type": "http.request", "body": b"", "more_body": False}
