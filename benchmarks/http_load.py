"""A plain client for load: it must take little of the processor that the server under test runs on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TYPE = "Content-Type: application/json\r\n"


@dataclass
class Response:
    """A status, a body, and the seconds that they took."""

    status: int
    body: bytes
    seconds: float


class Connection:
    """A connection that is kept open for one request after the other."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, body: bytes = b"", length: int | None = None) -> None:
        """Send a request, and wait for nothing."""
        # The server closes what has been idle for long.
        if self.writer is None or self.writer.is_closing() or self.reader.at_eof():
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        size = len(body) if length is None else length
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{TYPE}Content-Length: {size}\r\n\r\n"
        self.writer.write(head.encode() + body)

    async def ask(self, method: str, path: str, body: bytes = b"") -> Response:
        """Send a request and read its answer."""
        begin = time.perf_counter()
        await self.send(method, path, body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head.split(" ", 2)[1])
        size = re.search(r"content-length: (\d+)", head)
        content = await self.reader.readexactly(int(size[1])) if size else await self._chunks()
        if "connection: close" in head:
            self.close()
        return Response(status, content, time.perf_counter() - begin)

    async def _chunks(self) -> bytes:
        content = b""
        while size := int((await self.reader.readuntil(b"\r\n")).strip(), 16):
            content += (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readexactly(2)
        return content

    def close(self) -> None:
        """Go, whatever may still come."""
        if self.writer is not None:
            self.writer.transport.abort()
            self.writer = None


def translation(text: str | list[str]) -> bytes:
    """The body of a request to translate a text, or several."""
    return json.dumps({"text": text}).encode()


async def metrics(port: int) -> dict[str, float]:
    """The server's figures, each summed over its labels."""
    connection = Connection(port)
    lines = (await connection.ask("GET", "/metrics")).body.decode().splitlines()
    connection.close()
    found: dict[str, float] = {}
    for line in lines:
        name, _, value = line.rpartition(" ")
        if not line.startswith("#"):
            name = name.partition("{")[0].removeprefix("heedful_")
            found[name] = found.get(name, 0.0) + float(value)
    return found


@contextlib.contextmanager
def server(models: list[str], *arguments: str) -> Iterator[int]:
    """Start a server in a process of its own; gives its port."""
    command = [sys.executable, "-m", "heedful", "serve", *models, "--port", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
    if not found:
        raise SystemExit(line + process.stderr.read())
    try:
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def lines_of(path: str) -> list[str]:
    """The lines of a file that are not blank."""
    return [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]


def percentile(values: list[float], share: float) -> float:
    """The value below which that share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def in_another_process(program: str, *arguments: Any) -> Any:
    """What a program of this folder prints as JSON, run in a process of its own."""
    command = [sys.executable, str(Path(__file__).parent / program), *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
