"""Requests that are computed together do not take each other along."""

import warnings

import pytest

from heedful.errors import UserError
from heedful.server.messages import Done, Failed, ModelRequest
from heedful.server.worker import direct_requests as module
from heedful.server.worker.direct_requests import DirectRequests
from heedful.server.worker.reply import Reply
from heedful.tasks.direct_verb import DirectVerb
from heedful.tasks.remarks import TextWarning


@pytest.fixture
def calls(monkeypatch):
    found = []

    def compute(pipeline, inputs, options):
        found.append((pipeline, inputs))
        for place, each in enumerate(inputs):
            if each == "bad":
                raise UserError("bad text")
            if each == "odd":
                warnings.warn(TextWarning(place, "is odd"), stacklevel=1)
        return [each.upper() for each in inputs]

    verbs = {"shout": DirectVerb(compute), "alone": DirectVerb(compute, False)}
    monkeypatch.setattr(module, "direct_verbs", lambda: verbs)
    return found


def run_all(*runs):
    sent, requests = [], DirectRequests({"a": "A", "b": "B"})
    for run in runs:
        requests.add(Reply(run, sent.append))
    requests.cancel(99)
    while requests.busy:
        requests.step()
    return sent


def test_requests_for_the_same_are_computed_together(calls):
    sent = run_all(
        ModelRequest("a", "shout", ["x", "odd"], number=1),
        ModelRequest("b", "shout", ["y"], number=2),
        ModelRequest("a", "shout", ["odd", "z"], number=3),
        ModelRequest("a", "shout", ["w"], {"loud": True}, number=4),
        ModelRequest("a", "shout", ["never"], number=99),
    )
    assert calls == [("A", ["x", "odd", "odd", "z"]), ("B", ["y"]), ("A", ["w"])]
    assert sent[:2] == [Done(1, ["X", "ODD"], [(1, "is odd")]), Done(3, ["ODD", "Z"], [(0, "is odd")])]
    assert sent[2:] == [Done(2, ["Y"]), Done(4, ["W"])]


def test_one_that_fails_does_not_take_the_others_along(calls):
    sent = run_all(
        ModelRequest("a", "shout", ["x"], number=1),
        ModelRequest("a", "shout", ["bad"], number=2),
        ModelRequest("a", "shout", ["z"], number=3),
    )
    assert sent == [Done(1, ["X"]), Failed(2, "bad text", True), Done(3, ["Z"])]


def test_what_is_not_to_be_computed_together_is_not(calls):
    run_all(ModelRequest("a", "alone", ["x"], number=1), ModelRequest("a", "alone", ["y"], number=2))
    assert calls == [("A", ["x"]), ("A", ["y"])]


def test_work_is_counted_before_it_starts_and_done_in_parts_that_fit(calls, monkeypatch):
    from heedful.server.worker.memory_share import MemoryShare

    sized = DirectVerb(module.direct_verbs()["shout"].compute, True, lambda *_: 10)
    monkeypatch.setattr(module, "direct_verbs", lambda: {"shout": sized})
    memory, sent = MemoryShare(25), []
    requests = DirectRequests({"a": "A"}, memory)
    requests.add(Reply(ModelRequest("a", "shout", ["x", "odd", "y", "odd", "z"], number=1), sent.append))
    assert memory.take(20)
    requests.step()
    assert not sent and not calls and not memory.take(1)  # it waits for what is decoded, which gets nothing more
    memory.give(20)
    while requests.busy:
        requests.step()
    assert calls == [("A", ["x", "odd"]), ("A", ["y", "odd"]), ("A", ["z"])]
    assert sent == [Done(1, ["X", "ODD", "Y", "ODD", "Z"], [(1, "is odd"), (3, "is odd")])]


def test_memory_is_kept_for_a_request_only_as_long_as_its_client_waits(calls, monkeypatch):
    from heedful.server.worker.memory_share import MemoryShare

    sized = DirectVerb(module.direct_verbs()["shout"].compute, True, lambda *_: 10)
    monkeypatch.setattr(module, "direct_verbs", lambda: {"shout": sized})
    memory, sent = MemoryShare(29), []
    requests = DirectRequests({"a": "A"}, memory)
    requests.add(Reply(ModelRequest("a", "shout", ["x"], number=1), sent.append))
    assert memory.take(23)
    requests.step()
    assert not memory.take(1)
    requests.cancel(1)
    requests.step()
    assert memory.take(5) and not memory.take(2) and not sent


def test_a_long_request_is_computed_in_slices_and_others_take_their_turns(calls, monkeypatch):
    from heedful.tasks import direct_cost as direct_work

    compute = module.direct_verbs()["shout"].compute
    half = DirectVerb(compute, work=lambda *_: direct_work.MOST_WORK // 2)
    monkeypatch.setattr(module, "direct_verbs", lambda: {"shout": half, "call": DirectVerb(compute)})
    sent, requests = [], DirectRequests({"a": "A"})
    for number in (1, 2):  # two parts of one request
        requests.add(Reply(ModelRequest("a", "shout", ["x", "x", "odd"], number=number, name="long"), sent.append))
    requests.step()
    requests.add(Reply(ModelRequest("a", "call", ["y"], number=3, name="short"), sent.append))
    requests.step()
    requests.step()
    assert [len(inputs) for _, inputs in calls] == [2, 2, 1]
    assert sent == [Done(1, ["X", "X", "ODD"], [(2, "is odd")]), Done(3, ["Y"])]
    assert requests.num_waiting == 2
    requests.cancel(2)
    assert not requests.busy and requests.num_waiting == 0
