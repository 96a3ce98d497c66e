"""Connections whose client does not say what it wants."""

import asyncio
import socket

import uvicorn

from heedful.server.front import connection
from heedful.server.front.connection import Connection
from heedful.server.front.serve import _config
from heedful.server.settings import Limits, ServerSettings


async def slow(scope, receive, send):
    await asyncio.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def large(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"20000000")]})
    await send({"type": "http.response.body", "body": bytes(20_000_000)})


def test_an_answer_that_is_not_read_is_not_kept(monkeypatch):
    monkeypatch.setattr(Connection, "limits", Limits(seconds=0.3), raising=False)
    monkeypatch.setattr(connection, "SLOWEST_READING", 2**26, raising=False)

    async def run():
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(uvicorn.Config(large, http=Connection, lifespan="off", log_level="warning"))
            serving = asyncio.create_task(server.serve([listening]))
            reader, writer = await asyncio.open_connection(*listening.getsockname(), limit=2**10)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.read(1)
            assert len(server.server_state.connections) == 1
            async with asyncio.timeout(10):
                while server.server_state.connections:
                    await asyncio.sleep(0.05)
            writer.transport.abort()
            server.should_exit = True
            await serving

    asyncio.run(run())


def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE", 0.4)
    request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"

    async def until_it_closes(port, *parts):
        """What the server answers to parts of requests, each sent when the one before it is answered."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for part in parts[:-1]:
            writer.write(part)
            await reader.readuntil(b"ok")
        writer.write(parts[-1])
        rest = await reader.read()
        writer.close()
        return rest

    async def ask(port):
        # Answers take longer than a head may, and are given; a further head does not come.
        several = (b"",), (request[:9],), (request, request, request[:9])
        assert await asyncio.gather(*(until_it_closes(port, *parts) for parts in several)) == [b""] * 3

    async def run():
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(uvicorn.Config(slow, http=Connection, lifespan="off", log_level="warning"))
            serving = asyncio.create_task(server.serve([listening]))
            await asyncio.wait_for(ask(listening.getsockname()[1]), 30)
            server.should_exit = True
            await serving

    asyncio.run(run())


def test_a_request_for_another_protocol_is_answered_in_this_one_without_a_word(capsys):
    async def empty(scope, receive, send):
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def run():
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server = uvicorn.Server(_config(empty, ServerSettings({})))
            serving = asyncio.create_task(server.serve([listening]))
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            upgrade = (
                b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            )
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n" + upgrade + b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 204 ")
            writer.close()
            server.should_exit = True
            await serving

    asyncio.run(run())
    assert not capsys.readouterr().err
