"""Running the server until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from dataclasses import replace
from types import FrameType
from typing import Any

import uvicorn

from heedful.errors import UserError
from heedful.machine.signals import ending_signals
from heedful.server.front.app import build_app
from heedful.server.front.connection import Connection
from heedful.server.front.hosts import is_loopback
from heedful.server.front.open_files import ACCEPTED_AT_ONCE, AcceptFailures, connections_that_fit
from heedful.server.front.pool import WorkerPool
from heedful.server.front.private_models import private_models
from heedful.server.settings import ServerSettings

# Connections that may wait to be accepted.
BACKLOG = 2048
# Seconds that a connection is kept without a request: longer than most clients keep theirs, which would otherwise find
# it closed just as they use it.
KEEP_ALIVE = 75


def serve(settings: ServerSettings, host: str, port: int) -> None:
    """Load the models, listen, and return when everything that was under way at the end is answered."""
    asyncio.run(_serve(settings, host, port))


async def _serve(settings: ServerSettings, host: str, port: int) -> None:
    for number in ending_signals():
        signal.signal(number, _leave)
    listening = _listen(host, port)  # first: a port that is taken must not wait for the models
    address = listening.getsockname()[0]
    limits = replace(settings.limits, connections=connections_that_fit(settings))
    settings = replace(settings, address=host, limits=limits)
    if not settings.keys and not is_loopback(address):
        print(
            f"heedful: listening on {address} without an API key: whoever can reach it can use these models; set "
            "--api-key-file, or listen on 127.0.0.1",
            file=sys.stderr,
            flush=True,
        )
    with contextlib.closing(listening), private_models(settings) as own:
        await _run(WorkerPool(own), listening)


async def _run(pool: WorkerPool, listening: socket.socket) -> None:
    try:
        await pool.start()
        server = _Server(_config(build_app(pool), pool.settings), pool)
        # Also before the server runs, and while it ends.
        for number in ending_signals():
            signal.signal(number, server.handle_exit)
        asyncio.get_running_loop().set_exception_handler(AcceptFailures())
        listening.listen(BACKLOG)  # from here on nobody is turned away
        address, actual_port = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        print(f"heedful: serving {', '.join(pool.models)} on http://{shown}:{actual_port}", file=sys.stderr, flush=True)
        await server.serve([listening])
        # The end is under way: another signal while the interpreter cleans up must not turn it into a failure.
        for number in ending_signals():
            signal.signal(number, signal.SIG_IGN)
    finally:
        await pool.stop()


def _config(app: Any, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection.within(settings.limits),
        ws="none",
        log_level="warning",
        backlog=ACCEPTED_AT_ONCE,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(settings.limits.seconds) + 1,
    )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UserError(f"cannot listen on {host} port {port}: {error}: choose another --host") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen on {host} port {port}: {error.strerror}: choose another --host or --port (0 is a free one)"
        ) from None
    return listening


class _Server(uvicorn.Server):
    """Refuses new requests as soon as it is told to stop, and finishes the others."""

    def __init__(self, config: uvicorn.Config, pool: WorkerPool) -> None:
        super().__init__(config)
        self.pool = pool

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, a few at once, while many may wait."""
        await super().startup(sockets)
        for each in sockets or []:
            each.listen(BACKLOG)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second Ctrl-C does not wait."""
        if not self.should_exit:
            _log(sig, "new requests are refused, what is under way is finished")
        elif sig == signal.SIGINT:
            _log(sig, "what is under way is given up")
            self.force_exit = True
        self.pool.closing = self.should_exit = True


def _leave(number: int, frame: FrameType | None) -> None:
    """End before there is anything to finish."""
    _log(number, "the models were not loaded yet")
    raise SystemExit(128 + number)


def _log(number: int, what: str) -> None:
    """Log what a signal brings about; not with `print`, which the signal may have interrupted."""
    os.write(sys.stderr.fileno(), f"heedful: {signal.Signals(number).name}: {what}\n".encode())
