"""A scheduler to which requests come, and from which they go, while others are under way."""

import random

import pytest

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.decoding.run import decode_stepwise
from heedful.decoding.scheduler import Scheduler

SETTINGS = {
    "greedy": DecodingOptions(beam=1, max_extra=7),
    "beam": DecodingOptions(beam=5, nbest=3, max_extra=7, min_length=2),
    "sampling": DecodingOptions(max_extra=7, sampling=SamplingOptions(0.8, top_p=0.9)),
}


def mixed_requests(count, seed=0):
    draw = random.Random(seed)
    lengths = [draw.choice((0, 1, 5, 11, 90)) for _ in range(count)]
    return [
        Request(n, [draw.randrange(3, 17) for _ in range(length)], (5, 7)[: n % 3]) for n, length in enumerate(lengths)
    ]


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("max_sentences", [1, 5, 16])
def test_results_are_the_same_whenever_requests_come_and_others_go(table_model, options, max_sentences):
    model, requests = table_model(17, end_bias=1.0), mixed_requests(41)
    expected = {result.index: result.hypotheses for result in decode(model, requests, options, 7)}
    draw, scheduler, found = random.Random(1), Scheduler(model, options, max_sentences), {}
    waiting, cancelled = list(requests), set()
    while waiting or not scheduler.idle:
        if waiting and (scheduler.idle or draw.random() < 0.4):
            count = draw.randint(1, 5)
            scheduler.add(waiting[:count])
            waiting = waiting[count:]
        under_way = sorted(set(range(41 - len(waiting))) - found.keys() - cancelled)
        if under_way and draw.random() < 0.1:
            index = draw.choice(under_way)
            scheduler.cancel(index)
            cancelled.add(index)
        found.update({result.index: result.hypotheses for result in scheduler.step()})
    assert found == {index: expected[index] for index in expected if index not in cancelled}
    assert len(cancelled) > 2 and len(found) > 9
    assert scheduler.num_waiting == scheduler.num_running == 0


def test_lanes_grow_with_what_waits_and_go_when_they_are_idle(table_model):
    model = table_model(17, end_bias=-50.0)
    scheduler = Scheduler(model, DecodingOptions(beam=1, max_extra=20), 16)
    scheduler.add([Request(0, [5])])
    scheduler.step()
    assert scheduler.num_slots == 1
    scheduler.add([Request(n, [5]) for n in range(1, 6)])
    scheduler.step()
    assert (scheduler.num_running, scheduler.num_slots) == (6, 1 + 8)
    scheduler.add([Request(n, [5]) for n in range(6, 40)])
    scheduler.step()
    assert [state.capacity for state in model.states] == [1, 8, 16]
    for index in range(40):
        scheduler.cancel(index)
    assert scheduler.idle and scheduler.step() == []
    assert scheduler.num_slots == 0


def test_a_request_has_its_own_limit_and_its_own_random_numbers(table_model):
    model = table_model(17, end_bias=-50.0)
    options = DecodingOptions(sampling=SamplingOptions(seed=3))
    expected = {}
    for seed in (3, 11):
        own = DecodingOptions(max_length=29, sampling=SamplingOptions(seed=seed))
        (result,) = decode(model, [Request(7, [5])], own, 1)
        expected[seed] = result.hypotheses[0].tokens
    requests = [
        Request(0, [5], max_length=29, draw=(11, 7)),
        Request(7, [5], max_length=13),
        Request(2, [5], max_length=200),
    ]
    found = {result.index: result.hypotheses[0].tokens for result in decode(model, requests, options, 5)}
    assert found[0] == expected[11]
    assert found[7] == expected[3][:13]
    assert len(found[2]) == 200


def test_who_watches_sees_every_token_and_may_give_up(table_model):
    model = table_model(17, end_bias=-50.0)
    (whole,) = decode(model, [Request(0, [5])], DecodingOptions(beam=1, max_length=11), 1)
    seen = []

    def watch(progress):
        seen.append(progress.last)
        likeliest = progress.likeliest(4)
        assert likeliest[0] == progress.last and len(likeliest) == 4
        assert [token for token, _ in seen] == progress.tokens
        return len(seen) < 7

    results = [
        each for step in decode_stepwise(model, [Request(0, [5])], DecodingOptions(beam=1), 3, watch) for each in step
    ]
    assert results == []
    assert seen == list(zip(whole.hypotheses[0].tokens[:7], whole.hypotheses[0].token_scores[:7], strict=True))


def test_the_best_of_a_beam_so_far_leads_to_the_best_at_last(table_model):
    model, shown = table_model(17, end_bias=1.0), []
    options = DecodingOptions(beam=5, max_extra=7)

    def watch(progress):
        shown.append(progress.tokens)
        return True

    results = [each for step in decode_stepwise(model, [Request(0, [5, 7])], options, 1, watch) for each in step]
    assert len(results) == 1
    # The best so far grows with every step while it is under way; one that has ended stays until it is overtaken.
    assert all(len(tokens) in (step, len(shown[-1])) for step, tokens in enumerate(shown, 1))
    assert shown[-1] == results[0].hypotheses[0].tokens
