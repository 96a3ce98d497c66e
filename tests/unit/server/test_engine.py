"""What becomes of requests whose sentences fail, with schedulers that only pretend."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import heedful
from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.models import memory_plan
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.server.worker.engine import Engine, _Place
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig


class Requester:
    def __init__(self, engine, indices, fails=False):
        self.engine, self.indices, self.fails, self.told = engine, indices, fails, []

    def done(self, index, hypotheses):
        if self.fails:
            raise KeyError(index)
        self.told.append((index, hypotheses))

    def failed(self, error):
        for index in self.indices:
            self.engine.cancel(index)
        self.told.append(repr(error))


def small_model():
    torch.manual_seed(1)
    stack = StackConfig(num_layers=1, attention=AttentionConfig(num_heads=1))
    return EncoderDecoder(EncoderDecoderConfig(23, 8, 31, encoder=stack, decoder=stack)).eval()


def test_memory_is_planned_over_all_sets_of_options(monkeypatch):
    model = small_model()
    # Room for three sentences of a beam of two, which each of four sets of options would have taken for itself.
    sentence = model.decoding_bytes(2, memory_plan.SLOT_LENGTH)
    monkeypatch.setattr(memory_plan, "memory_limit", lambda: int(3.2 * 4 * sentence))
    monkeypatch.setattr(memory_plan, "available_cores", lambda: 1)
    engine = Engine({"m": model})
    listeners = []
    for penalty in (0.1, 0.2, 0.3, 0.4):
        indices = [next(engine.indices) for _ in range(3)]
        listeners.append(Requester(engine, indices))
        requests = [Request(index, [7, 8, 9, 10 + index % 5]) for index in indices]
        engine.add("m", DecodingOptions(beam=2, min_length=5, length_penalty=penalty), requests, listeners[-1])
    most = 0
    while engine.busy:
        engine.step()
        most = max(most, sum(each.num_running for each in engine.schedulers.values()))
    assert [len(each.told) for each in listeners] == [3] * 4
    # With the length that they come to, a few more of them fit than of the longest.
    in_use = most * model.decoding_bytes(2, 64)
    assert 0 < in_use <= 3.2 * sentence


def test_what_waits_for_memory_can_be_cancelled(monkeypatch):
    model = small_model()
    monkeypatch.setattr(memory_plan, "memory_limit", lambda: 1)
    engine = Engine({"m": model})
    first, second, third = (Requester(engine, [next(engine.indices)]) for _ in range(3))
    for each in (first, second, third):
        engine.add("m", DecodingOptions(beam=2, min_length=3), [Request(each.indices[0], [7, 8])], each)
    engine.step()
    assert sum(each.num_running for each in engine.schedulers.values()) == 1
    engine.cancel(second.indices[0])
    while engine.busy:
        engine.step()
    assert len(first.told) == len(third.told) == 1 and not second.told


@pytest.mark.parametrize("engine_name", ["core", "torch"])
def test_steps_are_counted_by_sentences(untrained_model: Path, engine_name):
    engine = Engine({"m": heedful.load(untrained_model, engine=engine_name).model})
    requester = Requester(engine, [next(engine.indices) for _ in range(3)])
    options = DecodingOptions(beam=2, min_length=7, max_length=7)
    engine.add("m", options, [Request(index, [7, 8, 9]) for index in requester.indices], requester)
    while engine.busy:
        engine.step()
    # Seven tokens, and the step that tells whether they end there.
    assert len(requester.told) == 3 and engine.tokens == 3 * 8


def test_a_fault_of_one_who_watches_ends_that_request_alone():
    engine = Engine({"m": small_model()})
    broken, whole = (Requester(engine, [next(engine.indices)]) for _ in range(2))

    def fail(progress):
        raise KeyError("watch")

    engine.add("m", DecodingOptions(min_length=3), [Request(broken.indices[0], [7, 8, 9])], broken, fail)
    engine.add("m", DecodingOptions(min_length=3), [Request(whole.indices[0], [7, 8, 9])], whole)
    while engine.busy:
        engine.step()
    assert broken.told == ["KeyError('watch')"] and len(whole.told) == 1


def test_a_request_that_cannot_be_answered_leaves_the_others_alone():
    cancelled = []
    results = [SimpleNamespace(index=index, hypotheses=[index]) for index in (3, 5, 7)]
    scheduler = SimpleNamespace(step=lambda: results, num_steps=1, idle=False, cancel=cancelled.append)
    engine = Engine({})
    engine.schedulers["key"] = scheduler
    broken, whole = Requester(engine, [3, 5, 11], fails=True), Requester(engine, [7])
    engine.places = {index: _Place("key", each) for each in (broken, whole) for index in each.indices}
    engine.step()
    assert broken.told == ["KeyError(3)"] and whole.told == [(7, [7])]
    assert cancelled == [5, 11] and not engine.busy
