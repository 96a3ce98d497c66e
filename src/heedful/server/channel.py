"""Frames over a socket: four bytes of length, then messages that one of our own processes pickled."""

from __future__ import annotations

import asyncio
import pickle
import selectors
import socket
import struct
from collections.abc import Sequence
from typing import Any

HEADER = struct.Struct("!I")
READ_BYTES = 1 << 20


def frame(messages: Sequence[Any]) -> bytes:
    """Messages as bytes to be sent."""
    payload = pickle.dumps(list(messages), pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(payload)) + payload


async def read_frame(reader: asyncio.StreamReader) -> list[Any]:
    """The messages of the next frame; `IncompleteReadError` when the other side is gone."""
    (length,) = HEADER.unpack(await reader.readexactly(HEADER.size))
    messages: list[Any] = pickle.loads(await reader.readexactly(length))
    return messages


class Channel:
    """The worker's end, which waits only when there is nothing else to do."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        self.connection = connection
        self.readable = selectors.DefaultSelector()  # takes file descriptors of any size, unlike `select`
        self.readable.register(connection, selectors.EVENT_READ)
        self.received = bytearray()

    def send(self, messages: Sequence[Any]) -> None:
        """Send messages, if any."""
        if messages:
            self.connection.sendall(frame(messages))

    def receive(self, wait: bool) -> list[Any]:
        """All messages that have arrived, or at least one if told to wait; `EOFError` when the other side is gone."""
        messages: list[Any] = []
        while self.readable.select(None if wait and not messages else 0):
            data = self.connection.recv(READ_BYTES)
            if not data:
                if messages:
                    return messages  # its last words; the next call reports that it is gone
                raise EOFError
            self.received += data
            messages += self._complete()
        return messages

    def _complete(self) -> list[Any]:
        """Take the frames that have arrived in full."""
        messages: list[Any] = []
        while len(self.received) >= HEADER.size:
            (length,) = HEADER.unpack_from(self.received)
            end = HEADER.size + length
            if len(self.received) < end:
                break
            messages += pickle.loads(bytes(self.received[HEADER.size : end]))
            del self.received[:end]
        return messages
