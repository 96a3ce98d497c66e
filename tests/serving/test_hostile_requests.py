"""Requests that no honest client sends are refused in words, soon, and the workers live on."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

# A body that each route takes, as JSON for each field.
BODIES: dict[str, dict[str, str]] = {
    "/api/translate": {"model": '"translator"', "text": '"dog"', "prefix": '"the"', "beam": "2", "nbest": "2"},
    "/api/alternatives": {"model": '"translator"', "text": '"dog"', "prefix": '"the"', "count": "3"},
    "/api/generate": {
        "model": '"writer"', "prompt": '"the"', "max_tokens": "3", "temperature": "0.8", "top_k": "5",
        "top_p": "0.5", "seed": "1", "stop": '["x"]', "samples": "1",
    },
    "/api/classify": {"model": '"classifier"', "text": '"dog"'},
    "/api/tag": {"model": '"tagger"', "text": '"dog"'},
    "/api/fill": {"model": '"guesser"', "text": '"a [MASK]"', "top": "3"},
    "/api/embed": {"model": '"tagger"', "text": '"dog"'},
    "/api/attention": {"model": '"translator"', "text": '"dog"', "target": '"dog"'},
    "/api/explain": {"model": '"translator"', "text": '"dog"', "target": '"dog"', "switches": '{"scaling": false}'},
    "/v1/completions": {
        "model": '"writer"', "prompt": '"the"', "max_tokens": "3", "temperature": "0.8", "top_p": "0.5",
        "seed": "1", "stop": '"x"', "n": "1", "logprobs": "1", "user": '"me"',
    },
    "/v1/embeddings": {"model": '"tagger"', "input": '"dog"', "user": '"me"'},
    "/translate": {"q": '"dog"', "source": '"en"', "target": '"de"', "alternatives": "0", "api_key": '"x"'},
}  # fmt: skip
FIELDS = [(path, name) for path, body in BODIES.items() for name in body]
NUMBERS = ["1e9", "1e12", "-1", "1e-320", "1e400", "NaN", "Infinity", "-Infinity", "1" * 400, "1" * 5000, "0.5e-300"]
# What each field that is a number does take of these.
TAKEN = {"top_k": {"1e9", "1e12", "1" * 400}, "seed": {"1e9", "1e12"}, "temperature": set()}


@pytest.fixture(scope="module")
def client(server) -> Iterator[httpx.Client]:
    with server.client as client:
        yield client
        assert client.get("/healthz").json()["status"] == "ok"
        assert server.metric("worker_restarts_total") == 0


def refusal(client: httpx.Client, path: str, content: str) -> str:
    """What is said to a body that is refused, which must not take long."""
    begin = time.monotonic()
    answer = client.post(path, content=content.encode(), headers={"Content-Type": "application/json"})
    seconds = time.monotonic() - begin
    assert answer.status_code in (400, 422), (answer.status_code, content[:100], answer.text[:200])
    assert seconds < 5, content[:100]
    error = answer.json()["error"]
    return error if isinstance(error, str) else error["message"]


def body(path: str, **changes: str) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in {**BODIES[path], **changes}.items()) + "}"


@pytest.mark.parametrize("path", BODIES)
def test_the_bodies_are_right_as_they_are(client, path: str) -> None:
    assert client.post(path, content=body(path), headers={"Content-Type": "application/json"}).status_code == 200


@pytest.mark.parametrize(("path", "name"), FIELDS)
@pytest.mark.parametrize("text", [r'"\ud800"', r'["dog", "a\uDFFF [MASK]"]', r'[["dog", "\udc00\ud800"]]'])
def test_half_a_character_is_no_text(client, path: str, name: str, text: str) -> None:
    assert "half of a character" in refusal(client, path, body(path, **{name: text}))


@pytest.mark.parametrize("path", BODIES)
def test_half_a_character_is_no_name(client, path: str) -> None:
    assert "half of a character" in refusal(client, path, body(path, **{r"\ud800": "1"}))
    raw = body(path).replace("dog", "\ud800").replace("the", "\ud800").encode("utf-8", "surrogatepass")
    answer = client.post(path, content=raw, headers={"Content-Type": "application/json"})
    assert b"\xed\xa0\x80" not in raw or (answer.status_code == 422 and "not valid UTF-8" in answer.text)


def test_whole_characters_of_two_halves_are_text(client) -> None:
    text = json.dumps("dog \U0001f600")
    assert "\\ud83d" in text
    answer = client.post(
        "/api/translate", content=body("/api/translate", text=text), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(("path", "name"), FIELDS)
def test_numbers_that_cannot_be_meant(client, path: str, name: str) -> None:
    for number in NUMBERS:
        if number not in TAKEN.get(name, ()):
            assert name in refusal(client, path, body(path, **{name: number}))


@pytest.mark.parametrize("path", BODIES)
def test_bodies_that_can_be_read_in_two_ways(client, path: str) -> None:
    name = next(iter(BODIES[path]))
    twice = body(path)[:-1] + f', "{name}": "other"}}'
    assert refusal(client, path, twice) == f"the body cannot be read: the key {name!r} is there twice"
    for nested in ("[" * 900 + "]" * 900, "[" * 10**5 + "]" * 10**5, '{"a": ' * 900 + "1" + "}" * 900):
        refusal(client, path, body(path, **{name: nested}))


@pytest.mark.parametrize(
    "head",
    [
        b"Host: 127.0.0.1:\xb2\r\n",
        b"Host: 127.0.0.1:\xb2\r\nOrigin: http://127.0.0.1\r\n",
        b"Host: \xff\xfe\r\n",
        b"Host: [::1\r\n",
        b"Host: 127.0.0.1\r\nOrigin: http://127.0.0.1:\xb2\r\n",
        b"Host: 127.0.0.1\r\nOrigin: \xff\r\n",
        b"Host: 127.0.0.1\r\nContent-Length: \xb2\r\n",
        b"Host: 127.0.0.1\r\nContent-Length: 99999999999999999999999\r\n",
        b"Host: 127.0.0.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n",
        b"Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n",
    ],
)
def test_heads_that_are_none(server, client, head: bytes) -> None:
    with connect(server) as connection:
        connection.sendall(b"POST /api/translate HTTP/1.1\r\nConnection: close\r\n" + head + b"\r\n")
        answer = received(connection)
    assert answer.split(b" ")[1] in (b"400", b"403"), answer
    assert len(answer.partition(b"\r\n\r\n")[2]) > 20, answer


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: x\r\n\r\n",
        b"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_as_the_docs_say(server, client, sent: bytes) -> None:
    said = b"Invalid HTTP request received."
    assert f"`{said.decode()}`" in (Path(__file__).parents[2] / "docs/serving.md").read_text()
    with connect(server) as connection:
        connection.sendall(sent)
        head, _, content = received(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and said in content
    assert b"content-type: text/plain" in head and b"x-request-id" not in head


def test_a_body_that_is_cut_short_is_forgotten(server, client) -> None:
    head = b"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    for part in (b'Content-Length: 100\r\n\r\n{"text": ', b'Transfer-Encoding: chunked\r\n\r\n9\r\n{"text": '):
        with connect(server) as connection:
            connection.sendall(head + part)
            connection.shutdown(socket.SHUT_WR)
            assert received(connection) == b""
    assert client.post("/api/translate", json={"text": "dog"}).status_code == 200


def test_a_body_of_two_lengths_is_refused_and_the_connection_closed(server, client) -> None:
    head = b"POST /api/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connect(server) as connection:
        connection.sendall(head + b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1, answer


def connect(server) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


def received(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    parts = []
    while part := connection.recv(2**16):
        parts.append(part)
    return b"".join(parts)
