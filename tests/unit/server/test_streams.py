"""A stream flows beside a batch that nobody watches, and the batch goes on beside the stream."""

from pathlib import Path

import pytest

import heedful
from heedful.core import scheduler as core_scheduler
from heedful.decoding.hypothesis import Hypothesis, Request
from heedful.decoding.options import DecodingOptions
from heedful.server.worker.engine import MOST_SENTENCES, Engine

TOKENS = 13
BATCH = DecodingOptions(beam=2, min_length=TOKENS, max_length=TOKENS)
OTHER = DecodingOptions(beam=3, min_length=TOKENS, max_length=TOKENS)
# More than there are slots, so that some wait.
SENTENCES = 3 * MOST_SENTENCES


class Client:
    """Counts the tokens that it is shown, and keeps what is done."""

    def __init__(self) -> None:
        self.shown = 0
        self.found: dict[int, list[Hypothesis]] = {}

    def watch(self, progress) -> bool:
        self.shown += 1
        assert len(progress.tokens) == self.shown
        return True

    def done(self, index: int, hypotheses: list[Hypothesis]) -> None:
        self.found[index] = hypotheses

    def failed(self, error: Exception) -> None:
        raise error


def source(index: int) -> list[int]:
    return [7 + index % 5, 8, 9 + index % 3]


def add(engine: Engine, options: DecodingOptions, number: int, watched: bool) -> Client:
    client = Client()
    requests = [Request(next(engine.indices), source(place)) for place in range(number)]
    engine.add("m", options, requests, client, client.watch if watched else None)
    return client


@pytest.fixture(params=["core", "torch"])
def engine(request, untrained_model: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose unwatched batches would run to their end, if they were let."""
    monkeypatch.setattr(core_scheduler, "AT_A_TIME", 600_000)
    return Engine({"m": heedful.load(untrained_model, engine=request.param).model})


@pytest.mark.parametrize("options", [BATCH, OTHER], ids=["same options", "other options"])
def test_a_stream_has_a_token_with_every_turn(engine: Engine, options: DecodingOptions) -> None:
    batch = add(engine, BATCH, SENTENCES, watched=False)
    stream = add(engine, options, 1, watched=True)
    for turn in range(1, TOKENS + 1):
        before = engine.tokens
        engine.step()
        assert stream.shown == turn and not stream.found
        # One token of each sentence that has a slot, the stream's own among them.
        assert 1 < engine.tokens - before <= MOST_SENTENCES + 1
    while engine.busy:
        engine.step()
    assert len(batch.found) == SENTENCES
    alone = add(engine, options, 1, watched=False)
    while engine.busy:
        engine.step()
    assert [*stream.found.values()] == [*alone.found.values()]


def test_a_batch_that_nobody_watches_takes_many_steps_in_a_turn(untrained_model: Path, monkeypatch) -> None:
    monkeypatch.setattr(core_scheduler, "AT_A_TIME", 600_000)
    engine = Engine({"m": heedful.load(untrained_model, engine="core").model})
    stream = add(engine, OTHER, 1, watched=True)
    while engine.busy:
        engine.step()
    batch = add(engine, BATCH, SENTENCES, watched=False)
    engine.step()
    assert len(stream.found) == 1 and len(batch.found) == SENTENCES
