"""Who gets a request, and what becomes of it, with workers that only take notes."""

import asyncio

import pytest

from heedful.server.front.errors import ApiError
from heedful.server.front.pool import Answer, WorkerPool
from heedful.server.front.worker_process import WorkerProcess
from heedful.server.messages import Cancel, Done, Failed, ModelRequest, Partial
from heedful.server.settings import Limits, ServerSettings


class Notes(WorkerProcess):
    """Answers what it is told to, in place of a process."""

    def __init__(self, settings, answer=None):
        super().__init__(settings, lambda worker: None, ready=True)
        self.told, self.answer = [], answer

    def send(self, message):
        self.told.append(message)
        if self.answer and isinstance(message, ModelRequest):
            for each in self.answer(message):
                asyncio.get_running_loop().call_soon(self._take, each)


def shout(run):
    return [Done(run.number, [text.upper() for text in run.inputs], [(0, "is odd")] if run.first == 4 else [])]


def pool_of(*answers, **limits):
    pool = WorkerPool(ServerSettings({}, limits=Limits(**limits)))
    pool.workers = [Notes(pool.settings, answer) for answer in answers]
    return pool


def request_for(*texts, **options):
    return ModelRequest("m", "shout", list(texts), options)


def test_a_list_is_spread_over_the_workers_and_put_together_again():
    pool = pool_of(shout, shout, shout)
    answer = asyncio.run(pool.run(request_for(*"abcdefg")))
    assert answer == Answer(list("ABCDEFG"), [])
    assert sorted(message.inputs for worker in pool.workers for message in worker.told) == [
        ["a", "b", "c"], ["d", "e", "f"], ["g"]
    ]  # fmt: skip
    assert asyncio.run(pool_of(shout, shout).run(request_for(*"abcdefgh"))).remarks == ["text 5 is odd"]
    assert pool.load == 0


def test_what_takes_too_long_is_given_up():
    pool = pool_of(None, seconds=0.03)
    for stream in (False, True):

        async def ask(stream=stream):
            return (
                [each async for each in pool.stream(request_for("a"))] if stream else await pool.run(request_for("a"))
            )

        with pytest.raises(ApiError, match=r"no answer within 0\.03 seconds") as caught:
            asyncio.run(ask())
        assert caught.value.kind.status == 504 and pool.load == 0
    assert [type(message) for message in pool.workers[0].told] == [ModelRequest, Cancel, ModelRequest, Cancel]


def test_a_part_that_fails_ends_the_others():
    def fail(run):
        return [Failed(run.number, "no", mistake=True)]

    pool = pool_of(fail, None)
    with pytest.raises(ApiError, match="no") as caught:
        asyncio.run(pool.run(request_for("a", "b")))
    assert caught.value.kind.status == 400 and pool.load == 0
    assert isinstance(pool.workers[1].told[-1], Cancel)


def test_too_much_is_refused_at_once():
    pool = pool_of(None, None, queue=5, seconds=0.2)

    async def crowd():
        waiting = [asyncio.create_task(pool.run(request_for("a"))) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert sorted(worker.load for worker in pool.workers) == [1, 2]
        with pytest.raises(ApiError) as caught:
            await pool.run(request_for("a", samples=3))
        assert caught.value.kind.status == 429 and caught.value.headers == {"Retry-After": "1"}
        with pytest.raises(ApiError) as caught:
            await pool.run(request_for("a", samples=6))
        assert caught.value.kind.status == 400
        pool.closing = True
        with pytest.raises(ApiError) as caught:
            await pool.run(request_for("a"))
        assert caught.value.kind.status == 503
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert pool.load == 0

    asyncio.run(crowd())


def test_a_stream_gives_parts_and_then_the_whole():
    def grow(run):
        return [Partial(run.number, "A"), Partial(run.number, "AB"), Done(run.number, ["AB"])]

    async def ask():
        return [each async for each in pool_of(grow).stream(request_for("ab"))]

    assert asyncio.run(ask()) == ["A", "AB", Answer(["AB"], [])]
