import itertools
import random
from collections import deque

import pytest
import torch

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.decoding.lane import STEPS_TO_GATHER
from heedful.decoding.run import WINDOW
from heedful.decoding.scheduler import SHORT, Scheduler
from heedful.errors import UserError


def mixed_requests(count, seed=0, longest=23):
    draw = random.Random(seed)
    return [
        Request(n, [draw.randrange(3, 17) for _ in range(draw.randrange(longest))], (5, 7)[: n % 5 % 3])
        for n in range(count)
    ]


def by_index(results):
    found = {}
    for result in results:
        assert result.index not in found
        found[result.index] = result.hypotheses
    return found


SETTINGS = [
    DecodingOptions(beam=1, max_extra=7),
    DecodingOptions(beam=5, nbest=3, max_extra=7, min_length=2),
    DecodingOptions(nbest=2, max_extra=7, sampling=SamplingOptions(0.8, top_p=0.9)),
]


@pytest.mark.parametrize("options", SETTINGS)
def test_results_depend_on_neither_batch_size_nor_order(table_model, options):
    requests = mixed_requests(31)
    requests += [Request(31 + n, [3 + n] * (SHORT * n + 1)) for n in range(3)]
    model = table_model(17, end_bias=1.0)
    expected = by_index(decode(model, requests, options, 1))
    assert sorted(expected) == list(range(34))
    random.Random(1).shuffle(requests)
    assert by_index(decode(model, requests, options, 7)) == expected
    assert by_index(decode(model, iter(requests), options, 64)) == expected


def test_slots_are_refilled_while_others_go_on(table_model):
    model = table_model(17, end_bias=0.5)
    by_index(decode(model, mixed_requests(61), DecodingOptions(beam=2, max_extra=7), 5))
    (state,) = model.states
    assert state.capacity == 5
    refills = [slots for slots in state.inserts if len(slots) < 5]
    assert len(refills) > 9
    assert max(len(slots) for slots in state.inserts) == 5


def test_sentences_are_encoded_in_groups_of_similar_length(table_model):
    model = table_model(17, end_bias=1.0)
    by_index(decode(model, mixed_requests(200), DecodingOptions(beam=1, max_extra=3), 13))
    assert len(model.prefilled) < 30
    spread = [max(map(len, group)) - min(map(len, group)) for group in model.prefilled]
    assert sum(spread) / len(spread) < 5


def test_a_few_long_sentences_do_not_pad_many_short_ones(table_model):
    model = table_model(17, end_bias=1.0)
    requests = [Request(index, [3] * (50 if index % 20 == 0 else 7)) for index in range(120)]
    by_index(decode(model, requests, DecodingOptions(beam=1, max_extra=3), 64))
    assert len(model.prefilled) < 6
    tokens = [sum(map(len, group)) for group in model.prefilled]
    padded = [len(group) * max(map(len, group)) for group in model.prefilled]
    assert sum(padded) < 1.2 * sum(tokens)


def test_requests_that_come_one_by_one_are_encoded_together(table_model):
    model, options = table_model(17, end_bias=-9.0), DecodingOptions(beam=2, max_extra=70)
    requests = mixed_requests(63)
    expected = by_index(decode(model, requests, options, 1))
    encoded_before = len(model.prefilled)
    scheduler, found, late = Scheduler(model, options, 64), [], deque(requests[33:])
    scheduler.add(requests[:33])
    while late or not scheduler.idle:
        found += scheduler.step()
        if late:
            scheduler.add([late.popleft()])
    assert by_index(found) == expected
    assert len(model.prefilled) - encoded_before < 30 / 2


def test_a_request_waits_for_others_only_while_many_are_under_way(table_model):
    model, options = table_model(17, end_bias=-9.0), DecodingOptions(beam=1, max_extra=40)
    for running, held in ((1, 0), (7, 0), (17, STEPS_TO_GATHER - 1)):
        scheduler = Scheduler(model, options, 64)
        scheduler.add(mixed_requests(running))
        scheduler.step()
        scheduler.add([Request(running, [3, 4])])
        waited = 0
        while scheduler.step() or scheduler.num_waiting:
            waited += 1
        assert waited == held


def test_an_endless_stream_is_answered_in_bounded_memory(table_model):
    drawn = itertools.count()
    requests = (Request(n, [3 + n % 11] * (n % 13)) for n in drawn)
    model = table_model(17, end_bias=2.0)
    seen, furthest = set(), 0
    for number, result in enumerate(decode(model, requests, DecodingOptions(beam=1, max_extra=5), 3)):
        seen.add(result.index)
        ahead = max(seen) - min(set(range(number + 2)) - seen)
        furthest = max(furthest, ahead)
        if number == 500:
            break
    assert furthest <= 2 * WINDOW * 3 + 3
    assert next(drawn) - 501 <= WINDOW * 3 + 3
    assert len(model.states) == 1


def test_short_sentences_do_not_wait_for_a_long_one(table_model):
    model = table_model(17, end_bias=-50.0)
    long = Request(0, [5] * 200)
    short = [Request(n, [7] * (n % 3)) for n in range(1, 60)]
    order = [result.index for result in decode(model, [long, *short], DecodingOptions(beam=1, max_extra=2), 4)]
    assert order[-1] == 0
    # A lane for long sentences has fewer slots.
    assert sorted((state.capacity, state.source_length) for state in model.states) == [(1, 201), (4, 3)]


def test_a_lane_is_no_larger_than_needed_when_all_is_known(table_model):
    model = table_model(17)
    list(decode(model, [Request(0, [5] * 7), Request(1, [5] * 11)], DecodingOptions(beam=3), 64))
    (state,) = model.states
    assert (state.capacity, state.source_length, state.target_length) == (2, 12, 11 + 50 + 1)


def test_the_models_limit_bounds_the_positions(table_model):
    model = table_model(17, end_bias=-50.0)
    model.limit = 19
    for options in (DecodingOptions(beam=1), DecodingOptions(beam=1, max_length=23)):
        (result,) = decode(model, [Request(0, [5] * 7)], options, 64)
        assert len(result.hypotheses[0].tokens) == 19
        assert model.states[-1].target_length == 20
    with pytest.raises(UserError, match="min_length is 20, but the model takes 19 target tokens"):
        decode(model, [], DecodingOptions(beam=1, min_length=20), 64)


def test_nothing_in_gives_nothing_out(table_model):
    assert list(decode(table_model(7), [], DecodingOptions(beam=1), 3)) == []


def test_the_caller_stays_out_of_inference_mode(table_model):
    for _ in decode(table_model(17), mixed_requests(5), DecodingOptions(beam=1), 2):
        assert not torch.is_inference_mode_enabled()
