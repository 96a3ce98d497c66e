import asyncio
import json

import pytest

from heedful.server.front.guard import Guard, Keys
from heedful.server.front.metrics import Metrics
from heedful.server.settings import Limits, ServerSettings


def ask(app, messages, *, limits=None, keys=(), path="/api/translate", headers=()):
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

        scope = {"type": "http", "path": path, "headers": [(name.encode(), value.encode()) for name, value in headers]}
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
    for headers in ([("x-api-key", "first")], [("authorization", "bearer first")]):
        assert ask(echo, [chunk(b"")], keys=keys, headers=headers)[0] == 200
    assert ask(echo, [chunk(b"")], keys=keys, path="/healthz")[0] == 200
    assert Keys(keys).accept("zweiter Schlüssel") and Keys(()).accept("anything")
