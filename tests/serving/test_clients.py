"""Clients that do not keep to the rules do not harm the others."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

KEY = {"X-API-Key": "secret"}
MEBIBYTE = 2**20


@pytest.fixture(scope="module")
def server(start, models, tmp_path_factory) -> Iterator:
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("secret\n")
    arguments = ["--workers", "1", "--max-body", "1", "--timeout", "5", "--api-key-file", keys]
    with start(models["translator"], *arguments) as running:
        yield running


def eventually(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


def connect(server) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)))


def connections(server) -> int:
    """The connections to the server's port that it has accepted and not closed yet, as the kernel counts them."""
    port = f":{int(server.url.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening, no_file = "0A", "0"
    return sum(row[1].endswith(port) and row[3] != listening and row[9] != no_file for row in rows)


def translate(server, **headers: str) -> httpx.Response:
    return httpx.post(f"{server.url}/api/translate", json={"text": "dog"}, headers={**KEY, **headers}, timeout=30)


@pytest.mark.parametrize("path", ["/", "/healthz", "/translate"])
def test_stalled_bodies_of_strangers_leave_room_for_those_who_have_a_key(server, path: str) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {MEBIBYTE}\r\n"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(17):
            connection = stack.enter_context(connect(server))
            with contextlib.suppress(OSError):  # it may be refused before its body is sent
                connection.sendall(head.encode() + b"\r\n" + b"x" * (MEBIBYTE - 100))
        time.sleep(0.3)
        assert translate(server).status_code == 200
        with httpx.Client() as client:
            large = client.post(f"{server.url}/api/translate", content=b"x" * (MEBIBYTE - 100), headers=KEY)
            assert large.status_code == 422


def test_the_key_comes_before_the_body(server) -> None:
    def post(content: bytes, kind: str, **headers: str) -> int:
        sent = {"Content-Type": kind, **headers}
        return httpx.post(f"{server.url}/translate", content=content, headers=sent).status_code

    form, document = "application/x-www-form-urlencoded", "application/json"
    assert post(b'{"q": ', document) == post(b"q", form) == post(b"", "text/plain") == 401
    assert post(b'{"q": ', document, **KEY) == 422
    right = {"q": 'say "api_key": "no"', "target": "de", "api_key": "secret"}
    assert post(json.dumps(right).encode(), document) == 200
    assert post(json.dumps({**right, "q": '"api_key": "secret"', "api_key": "no"}).encode(), document) == 401
    assert post(b"q=dog&target=de&api_key=s%65cret", form) == 200


def test_a_body_of_very_many_values_is_refused_as_it_comes(server) -> None:
    content = b'{"text": [' + b"1," * (MEBIBYTE // 2 - 100)
    with contextlib.ExitStack() as stack:
        answer = stack.enter_context(
            httpx.stream("POST", f"{server.url}/api/translate", content=content, headers=KEY, timeout=30)
        )
        answer.read()
    assert answer.status_code == 422 and "more than 131,072 values" in answer.json()["error"]["message"]


def test_clients_that_do_not_read_are_cut_off(server) -> None:
    request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            connection = stack.enter_context(connect(server))
            connection.sendall(request * 300)
        eventually(lambda: connections(server) >= 5)
        eventually(lambda: connections(server) == 0, 30)
        assert translate(server).status_code == 200


# Lets clients be cut off after 2 seconds, not those of a request and of a large answer that is read slowly.
HURRY = """
import sys
if "serve" in sys.orig_argv:
    from dataclasses import replace
    from heedful.server.front import connection
    within = connection.Connection.within
    connection.Connection.within = lambda limits: within(replace(limits, seconds=2.0))
    connection.SLOWEST_READING = 2**24
"""
CLIENTS = 20


def memory_after_cutting_off_clients(server, content: bytes) -> int:
    """Bytes that the process which answers holds when all clients have asked and read nothing."""
    head = (
        "POST /api/generate HTTP/1.1\r\nHost: localhost\r\nX-API-Key: secret\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    host, port = server.url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        for _ in range(CLIENTS):
            connection = stack.enter_context(socket.socket())
            # Small buffers, so that the answer waits in the server and not in the kernel.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
            connection.connect((host, int(port)))
            connection.sendall(head.encode() + content)
        eventually(lambda: connections(server) == CLIENTS)
        eventually(lambda: connections(server) == 0)
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_clients_that_are_cut_off_leave_neither_their_answers_nor_their_bodies_behind(
    start, models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(HURRY, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "keys").write_text("secret\n")
    asked = json.dumps({"prompt": "the", "max_tokens": 997, "samples": 16, "probabilities": True}).encode()
    # What a client may hold in all is four of the largest bodies, of which these take nearly everything.
    content = asked.ljust(4 * MEBIBYTE // CLIENTS - 100)
    limits = ["--max-body", "1", "--queue", "331", "--api-key-file", tmp_path / "keys"]
    with start(models["writer"], "--workers", "1", *limits) as server:
        before = memory_after_cutting_off_clients(server, content)  # freed memory is kept for the next answers
        grown = memory_after_cutting_off_clients(server, content) - before
        with httpx.Client(headers={**KEY, "Content-Type": "application/json"}, timeout=60) as client:
            large = client.post(f"{server.url}/api/generate", content=asked.ljust(MEBIBYTE - 100))
    assert large.status_code == 200 and len(large.content) > MEBIBYTE
    assert grown < CLIENTS * len(large.content) / 2


def test_requests_for_other_hosts_and_of_other_sites_are_refused(server) -> None:
    refused = translate(server, Host="evil.example")
    assert refused.status_code == 403 and "--allow-host evil.example" in refused.json()["error"]["message"]
    assert httpx.get(server.url, headers={"Host": "evil.example"}).status_code == 403
    form = {"q": "dog", "target": "de", "api_key": "secret"}
    posted = httpx.post(f"{server.url}/translate", data=form, headers={"Origin": "https://evil.example"})
    assert posted.status_code == 403 and "another site" in posted.json()["error"]["message"]
    port = server.url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert translate(server, Host=host, Origin=f"http://{host}").status_code == 200


def test_names_of_the_server_and_the_number_of_connections_can_be_set(start, models) -> None:
    arguments = ["--workers", "1", "--allow-host", "translate.example", "--max-connections", "5"]
    with start(models["translator"], *arguments) as server, contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connect(server))
        answer = httpx.get(f"{server.url}/healthz", headers={"Host": "translate.example"}, timeout=30)
        assert answer.status_code == 200
        assert connections(server) <= 6


def test_a_server_that_others_can_reach_without_a_key_says_so(run) -> None:
    said = run("serve", "nowhere", "--host", "0.0.0.0", "--port", "0", code=2).stderr.decode()
    assert "listening on 0.0.0.0 without an API key" in said and "--api-key-file" in said
