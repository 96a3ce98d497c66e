import asyncio
import json

import pytest

from heedful.server.front.errors import ApiError
from heedful.server.front.guard import Guard
from heedful.server.front.metrics import Metrics
from heedful.server.settings import Limits, ServerSettings


def ask(app, messages, *, limits=None, keys=(), path="/api/translate", headers=(), method="POST"):
    """Send a request through the guard; `messages` is what its client sends, and then it waits."""
    sent, metrics = [], Metrics()
    guard = Guard(app, ServerSettings({}, keys=keys, limits=limits or Limits()), metrics, {"/api/translate"})

    async def run():
        waiting = iter(messages)

        async def receive():
            message = next(waiting, None)
            if message is None:
                await asyncio.sleep(60)
            return message

        async def send(message):
            sent.append(message)

        encoded = [(name.encode(), value.encode()) for name, value in headers]
        scope = {"type": "http", "method": method, "path": path, "headers": encoded}
        await asyncio.wait_for(guard(scope, receive, send), 5)

    asyncio.run(run())
    status = sent[0]["status"] if sent else None
    return status, b"".join(each.get("body", b"") for each in sent[1:]), metrics, sent


def chunk(body, more=False):
    return {"type": "http.request", "body": body, "more_body": more}


async def echo(scope, receive, send):
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"no-cache")]})
    await send({"type": "http.response.body", "body": body})


def test_a_body_in_parts_is_put_together_and_the_answer_has_the_headers():
    status, body, metrics, sent = ask(echo, [chunk(b"ab", True), chunk(b"c")])
    assert (status, body) == (200, b"abc")
    headers = dict(sent[0]["headers"])
    assert headers[b"cache-control"] == b"no-cache" and b"frame-ancestors 'none'" in headers[b"content-security-policy"]
    assert metrics.requests == {("other", 200): 1}


@pytest.mark.parametrize("headers", [(), [("content-length", "12")]])
def test_a_body_that_is_too_large_is_refused_before_its_end(headers):
    parts = [chunk(b"xxxxxx", True), chunk(b"xxxxxx", True)]
    status, body, _, _ = ask(echo, parts, limits=Limits(body_bytes=11), headers=headers)
    assert status == 413 and json.loads(body)["error"]["type"] == "too_large"


def test_a_body_that_does_not_come_is_not_waited_for():
    assert ask(echo, [chunk(b"x", True)], limits=Limits(seconds=0.05))[0] == 408


def test_bodies_have_so_much_room_in_all():
    guard = Guard(echo, ServerSettings({}, limits=Limits(body_bytes=10)), Metrics(), {"/api/translate"})
    sent = []

    async def send(message):
        sent.append(message)

    async def crowd():
        async def stay():
            yield chunk(b"xxxxxxxxx", True)
            await asyncio.sleep(60)

        def receiver():
            parts = stay()
            return lambda: anext(parts)

        def ask(client):
            head = {"method": "POST", "path": "/api/translate", "headers": [], "client": (f"10.0.0.{client}", 1)}
            return asyncio.create_task(guard({"type": "http", **head}, receiver(), send))

        # 17 of them hold 153 bytes, and 18 would two more than the 160 of 16 bodies; one client may have 40.
        waiting = [ask(client) for client in (*(each for each in range(4) for _ in range(4)), 4)]
        await asyncio.sleep(0.01)
        assert not sent and guard.bodies.held.total() == 17 * 9
        waiting += [ask(0), ask(0), ask(5)]
        await asyncio.sleep(0.01)
        assert [each["status"] for each in sent if "status" in each] == [429, 429, 429]
        assert guard.bodies.held.total() == 17 * 9
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert not guard.bodies.held

    asyncio.run(crowd())


def test_the_head_of_a_page_is_that_of_the_page():
    seen = []

    async def note(scope, receive, send):
        seen.append(scope["method"])
        await echo(scope, receive, send)

    for method in ("HEAD", "GET", "POST"):
        assert ask(note, [chunk(b"")], method=method)[0] == 200
    assert seen == ["GET", "GET", "POST"]


def test_an_answer_that_ends_itself_while_its_client_does_not_read_is_no_fault():
    async def give_up(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise asyncio.CancelledError

    assert ask(give_up, [chunk(b"")])[0] == 200


def test_work_ends_when_the_client_goes():
    ended = []

    async def slow(scope, receive, send):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    status, _, metrics, _ = ask(slow, [chunk(b""), {"type": "http.disconnect"}])
    assert ended == [True] and status is None
    assert metrics.requests == {("other", 499): 1}


def test_keys():
    from heedful.server.front.keys import Keys

    keys = ("first", "zweiter Schlüssel")
    for headers in (
        [],
        [("x-api-key", "firs")],
        [("authorization", "Basic first")],
        [("authorization", "Bearer first2")],
    ):
        assert ask(echo, [chunk(b"")], keys=keys, headers=headers)[0] == 401
    for headers in (
        [("x-api-key", "first")],
        [("authorization", "bearer first")],
        [("x-api-key", "zweiter Schlüssel")],
    ):
        assert ask(echo, [chunk(b"")], keys=keys, headers=headers)[0] == 200
    assert ask(echo, [chunk(b"")], keys=keys, path="/healthz")[0] == 200
    assert Keys(keys).accept("zweiter Schlüssel") and Keys(()).accept("anything")


@pytest.mark.parametrize(("key", "large", "stalled"), [("first", 413, 408), ("wrong", 401, 401)])
def test_no_body_is_read_before_its_key_is_refused(key, large, stalled):
    limits, headers = Limits(body_bytes=11, seconds=0.05), [("x-api-key", key)]
    for declared in ([], [("content-length", "12")], [("transfer-encoding", "chunked")]):
        found = ask(echo, [chunk(b"x" * 12)], limits=limits, keys=("first",), headers=headers + declared)
        assert found[0] == large
    assert ask(echo, [chunk(b"x", True)], limits=limits, keys=("first",), headers=headers)[0] == stalled


def test_values_are_counted_outside_of_strings_however_the_body_is_cut():
    from heedful.server.front.bodies import MOST_VALUES, ValueCounter

    body = json.dumps({"a": [1, 2, "x, y [{"], "b\\": {'c\\"': "\\", "d,": None}}, separators=(",", ":")).encode()
    for size in range(1, len(body) + 1):
        counter = ValueCounter()
        for begin in range(0, len(body), size):
            counter.take(body[begin : begin + size])
        assert counter.values == 7 and not counter.in_string
    counter = ValueCounter()
    counter.take(b"[" + b"1," * (MOST_VALUES - 1))
    with pytest.raises(ApiError, match="more than 131,072 values"):
        counter.take(b",")


def test_bodies_that_no_path_takes_are_not_read():
    stalled = [chunk(b"x" * 100, True)]
    status, body, _, sent = ask(echo, stalled, path="/", headers=[("content-length", "1000000")])
    assert (status, body) == (200, b"") and dict(sent[0]["headers"])[b"connection"] == b"close"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("host", "evil.example")], 403),
        ([("host", "localhost:8000")], 200),
        ([("host", "[::1]:8000")], 200),
        ([("host", "127.0.0.1"), ("origin", "http://127.0.0.1")], 200),
        ([("host", "127.0.0.1:8000"), ("origin", "http://127.0.0.1:3000")], 403),
        ([("host", "localhost:8000"), ("origin", "http://localhost:8000")], 200),
        ([("host", "localhost"), ("origin", "https://evil.example")], 403),
        ([("host", "localhost"), ("origin", "null")], 403),
        ([("host", "localhost"), ("origin", "null"), ("sec-fetch-site", "same-origin")], 200),
        ([("host", "localhost"), ("sec-fetch-site", "cross-site")], 403),
        ([("host", "localhost.evil.example")], 403),
        ([("host", "192.168.1.5")], 403),
        ([("host", "localhost"), ("origin", "http://[")], 403),
    ],
)
def test_hosts_and_pages_of_others_are_refused(headers, status):
    assert ask(echo, [chunk(b"")], headers=headers)[0] == status


def test_hosts_that_the_operator_names_are_answered():
    from heedful.server.front.hosts import Hosts

    def allows(hosts, **headers):
        try:
            hosts.check("POST", {name.encode(): value.encode() for name, value in headers.items()})
        except ApiError:
            return False
        return True

    named = Hosts("127.0.0.1", ("translate.example",))
    assert allows(named, host="translate.example") and not allows(named, host="other.example")
    assert allows(named, host="127.0.0.1:8000", origin="https://translate.example")
    anyone = Hosts("127.0.0.1", ("*",))
    assert allows(anyone, host="x", origin="http://x") and not allows(anyone, host="x", origin="http://y")
    public = Hosts("0.0.0.0")
    assert allows(public, host="192.168.1.5:8000") and not allows(public, host="evil.example")
