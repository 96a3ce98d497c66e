import asyncio
import json

import pytest

from heedful.server.front.guard import Guard, Keys
from heedful.server.front.metrics import Metrics
from heedful.server.settings import Limits, ServerSettings


def ask(app, messages, *, limits=None, keys=(), path="/api/translate", headers=(), method="POST"):
    """Send a request through the guard; `messages` is what its client sends, and then it waits."""
    sent, metrics = [], Metrics()
    guard = Guard(app, ServerSettings({}, keys=keys, limits=limits or Limits()), metrics)

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
    guard = Guard(echo, ServerSettings({}, limits=Limits(body_bytes=10)), Metrics())
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

        scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
        waiting = [asyncio.create_task(guard(dict(scope), receiver(), send)) for _ in range(20)]
        await asyncio.sleep(0.01)
        # 17 of them would hold 153 bytes, and 18 two more than the 160 of 16 bodies.
        assert [each["status"] for each in sent if "status" in each] == [429, 429, 429]
        assert guard.held == 17 * 9
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert guard.held == 0

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
