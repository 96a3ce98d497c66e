"""A connection to a client, which is closed if a request's head does not come."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

# Seconds from the first byte of a request (or from the beginning of all) to the end of its head.
PATIENCE = 20.0


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """The protocol of uvicorn, which by itself waits for ever: silent clients would use up all sockets."""

    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take some bytes of a head, or of a body, for which there is another limit."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._closing is None:
            self._closing = asyncio.get_running_loop().call_later(PATIENCE, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
