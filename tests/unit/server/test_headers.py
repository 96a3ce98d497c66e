"""Whatever bytes a header holds, a request is answered, or refused in words."""

import asyncio
import ipaddress
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.server.front.errors import ApiError
from heedful.server.front.guard import Guard
from heedful.server.front.hosts import Hosts, host_and_port
from heedful.server.front.keys import Keys, key_in
from heedful.server.front.metrics import Metrics
from heedful.server.settings import Limits, ServerSettings

NAMES = ["host", "origin", "sec-fetch-site", "content-length", "content-type", "x-api-key", "authorization"]
# Bytes that mean something in these headers, and any others.
PIECES = [
    b"127.0.0.1", b"localhost", b"[::1]", b"evil.example", b"http://", b"https://", b"null", b"Bearer ", b":", b"80",
    b"99999", b"[", b"]", b"%", b"@", b"/", b"\xb2", b"\xa0", b"\xff", b"\xed\xa0\x80", b"cross-site",
    b"application/json", b"9" * 5000, b"-1",
]  # fmt: skip
VALUES = st.lists(st.sampled_from(PIECES) | st.binary(max_size=5), max_size=4).map(b"".join)
HEADERS = st.dictionaries(st.sampled_from([each.encode() for each in NAMES]), VALUES)


async def echo(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": (await receive())["body"]})


def answer(headers: dict[bytes, bytes], keys: tuple[str, ...]) -> tuple[int, bytes]:
    """The status and the body that the guard answers with."""
    sent: list[dict] = []
    guard = Guard(echo, ServerSettings({}, keys=keys, limits=Limits(seconds=5)), Metrics(), {"/api/translate"})

    messages = iter([{"type": "http.request", "body": b"{}", "more_body": False}])

    async def receive():
        return next(messages, None) or await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/api/translate", "headers": list(headers.items())}
    asyncio.run(asyncio.wait_for(guard(scope, receive, send), 5))
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent[1:])


@pytest.mark.parametrize("keys", [(), ("secret",)], ids=["open", "with a key"])
@given(headers=HEADERS)
@example(headers={b"host": b"127.0.0.1:\xb2", b"origin": b"http://127.0.0.1"})
@example(headers={b"content-length": b"9" * 5000})
def test_any_headers_are_answered_in_words(keys: tuple[str, ...], headers: dict[bytes, bytes]) -> None:
    status, body = answer(headers, keys)
    assert status in (200, 400, 401, 403, 413)
    if status == 200:
        assert body == b"{}"
    else:
        error = json.loads(body)["error"]
        assert error["type"] and len(error["message"]) > 20


def refused(host: bytes, origin: bytes | None) -> int | None:
    """The status with which a request is refused, if it is."""
    headers = {b"host": host} | ({} if origin is None else {b"origin": origin})
    try:
        Hosts("127.0.0.1").check("POST", headers)
    except ApiError as error:
        return error.kind.status
    return None


@given(host=VALUES, origin=st.none() | VALUES)
def test_what_passes_is_for_this_server(host: bytes, origin: bytes | None) -> None:
    status = refused(host, origin)
    if status is not None:
        assert status in (400, 403)
        return
    found = host_and_port(host.decode("ascii"))
    assert found is not None or not host
    assert found is None or found.name == "localhost" or ipaddress.ip_address(found.name).is_loopback
    if origin is not None:
        page = host_and_port(origin.decode("ascii").partition("://")[2])
        assert found is not None and page is not None and page.name == found.name


@given(name=st.from_regex(r"[a-z0-9_]([a-z0-9_.~-]{0,20}[a-z0-9_])?", fullmatch=True), port=st.integers(0, 65535))
def test_hosts_are_taken_apart(name: str, port: int) -> None:
    assert host_and_port(f"{name.upper()}:{port}") == host_and_port(f"{name}.:{port}") == (name, port)
    assert host_and_port(name) == host_and_port(f"{name}:") == (name, None)
    assert host_and_port(f"[::1]:{port}") == ("::1", port)


@given(key=st.text(st.characters(exclude_categories=[])), header=st.binary())
def test_any_key_can_be_compared(key: str, header: bytes) -> None:
    keys = Keys(("secret",))
    assert keys.accept(key) == (key == "secret")
    assert keys.accept(key_in({b"x-api-key": header})) == (header == b"secret")
