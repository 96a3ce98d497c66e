"""Decoding by the engine: the same hypotheses as torch finds, and the rules of adding, watching and cancelling."""

import gc
import math
import threading
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from core_folders import both, family_settings, save, texts
from heedful.core.model import CoreModel
from heedful.core.scheduler import CoreScheduler
from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.decoding.run import decode_stepwise, new_scheduler

VOCABULARY, END = 131, 2
# Scores of sums of some tens of log-probabilities.
CLOSE = {"rtol": 1e-5, "atol": 1e-4}


def ends_now_and_then(model) -> None:
    model.output.weight[END] *= 1.5


def never_ends(model) -> None:
    model.output.bias[END] = -100.0


def saved(folder: Path, family: str, change=ends_now_and_then, stack=None, **changes) -> Path:
    # Norms come first: behind norms that come last, an untrained model says the same again and again.
    settings = {"vocabulary_size": VOCABULARY, "tied_output": False, "embedding": {"scaled": True}, **changes}
    return save(folder, family, family_settings(family, settings, norm="pre", **stack or {}), change=change, output=1.5)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of each family that decodes, by both engines."""
    place = tmp_path_factory.mktemp("models")
    return {family: both(saved(place / family, family)) for family in ("encoder_decoder", "decoder_only")}


@pytest.fixture(params=["encoder_decoder", "decoder_only"])
def pair(request, models):
    return models[request.param]


@pytest.fixture
def core(models) -> CoreModel:
    return models["encoder_decoder"][0]


def requests_of(lengths, seed=0, prefixes=(), vocabulary=VOCABULARY) -> list[Request]:
    prefixes = [*prefixes, *[()] * len(lengths)]
    sources = texts(lengths, seed, vocabulary)
    return [Request(number, source, prefixes[number]) for number, source in enumerate(sources)]


MIXED = (0, 1, 5, 29, 3, 16, 2, 13, 31, 7)


def by_index(results) -> dict:
    return {each.index: each.hypotheses for each in results}


def check_alike(pair, requests, options, at_a_time=7) -> dict:
    """Both engines must find the same hypotheses; gives them."""
    found, expected = (by_index(decode(model, requests, options, at_a_time)) for model in pair)
    assert found.keys() == expected.keys() == {each.index for each in requests}
    for index, hypotheses in expected.items():
        assert [each.tokens for each in found[index]] == [each.tokens for each in hypotheses]
        assert [each.finished for each in found[index]] == [each.finished for each in hypotheses]
        for own, other in zip(found[index], hypotheses, strict=True):
            np.testing.assert_allclose(own.token_scores, other.token_scores, **CLOSE)
            np.testing.assert_allclose(own.score, other.score, **CLOSE)
    return found


SEARCHES = {
    "greedy": DecodingOptions(beam=1, max_extra=11),
    "beam 2": DecodingOptions(beam=2, max_extra=11),
    "beam 5": DecodingOptions(beam=5, nbest=5, max_extra=11),
    "beam 7": DecodingOptions(beam=7, nbest=3, max_extra=11),
    "beam 67": DecodingOptions(beam=67, nbest=67, max_extra=3),
    "no penalty": DecodingOptions(beam=5, nbest=5, length_penalty=0.0, max_extra=11),
    "large penalty": DecodingOptions(beam=5, nbest=5, length_penalty=2.0, max_extra=11),
    "at least 7": DecodingOptions(beam=3, nbest=3, min_length=7, max_extra=11),
    "at most 3": DecodingOptions(beam=3, nbest=3, max_length=3),
    "exactly 5": DecodingOptions(beam=3, nbest=3, min_length=5, max_length=5),
    "nothing": DecodingOptions(beam=3, nbest=3, max_length=0),
    "no more": DecodingOptions(beam=3, nbest=2, max_extra=0),
}


@pytest.mark.parametrize("options", SEARCHES.values(), ids=SEARCHES)
def test_it_finds_what_torch_finds(pair, options):
    found = check_alike(pair, requests_of(MIXED), options)
    if options.nbest > 1 and options.max_length is None:
        assert {each.finished for hypotheses in found.values() for each in hypotheses} == {True, False}
        assert len({token for hypotheses in found.values() for each in hypotheses for token in each.tokens}) > 11


def test_a_beam_of_more_than_there_are_tokens(tmp_path):
    for family in ("encoder_decoder", "decoder_only"):
        pair = both(save(tmp_path, family, family_settings(family, {"vocabulary_size": 19, "tied_output": False})))
        options = DecodingOptions(beam=23, nbest=23, max_extra=2)
        check_alike(pair, requests_of((1, 3, 0), vocabulary=19), options)
        check_alike(pair, requests_of((1, 3, 0), vocabulary=19), replace(options, length_penalty=0.0, min_length=2))


def test_a_beam_of_all_hypotheses_that_there_are(tmp_path):
    settings = family_settings("decoder_only", {"vocabulary_size": 5, "tied_output": False})
    pair = both(save(tmp_path, "decoder_only", settings))
    found = check_alike(pair, [Request(0, [3, 4])], DecodingOptions(beam=31, nbest=31, min_length=0, max_length=3))
    # The end, or one of two tokens and then the same again, up to three of them.
    assert sum(each.finished for each in found[0]) == 1 + 2 + 4 + 8
    assert math.fsum(math.exp(sum(each.token_scores)) for each in found[0] if each.finished) < 1


def test_models_that_never_end(tmp_path):
    folder = saved(tmp_path, "encoder_decoder", never_ends, output_bias=True)
    found = check_alike(both(folder), requests_of(MIXED), DecodingOptions(beam=5, nbest=5, max_extra=13))
    assert not any(each.finished for hypotheses in found.values() for each in hypotheses)


@pytest.mark.parametrize("beam", [1, 5])
def test_forced_prefixes(pair, beam):
    prefixes = [[17], [19, 23, 29], [], [31] * 17, [37, 41]]
    requests = requests_of(MIXED, 3, prefixes)
    found = check_alike(pair, requests, DecodingOptions(beam=beam, nbest=beam, max_extra=11))
    for request in requests:
        for each in found[request.index]:
            assert each.tokens[: len(request.prefix)] == list(request.prefix)


def test_prefixes_that_are_all_there_may_be(pair):
    options = DecodingOptions(beam=3, nbest=3, max_length=3)
    check_alike(pair, requests_of(MIXED, 3, [[17, 19, 23], [29, 31, 37]]), options)


def test_a_limit_of_its_own(pair):
    requests = [replace(each, max_length=each.index) for each in requests_of(MIXED, 5)]
    check_alike(pair, requests, DecodingOptions(beam=3, nbest=2))


def test_lengths_far_apart_side_by_side(tmp_path):
    pair = both(saved(tmp_path, "encoder_decoder"))
    check_alike(pair, requests_of((1, 211, 0, 97, 3, 1, 149), 7), DecodingOptions(beam=3, max_length=23), 3)


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoid_halves", "alibi", "relative_buckets", "none"])
@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
def test_texts_longer_than_the_model(tmp_path, family, positions):
    pair = both(saved(tmp_path, family, positions=positions, max_length=7))
    check_alike(pair, requests_of((29, 3, 41), 11), DecodingOptions(beam=2, max_extra=19))


@pytest.mark.parametrize("positions", ["learned", "rotary"])
@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
def test_targets_end_where_positions_do(tmp_path, family, positions):
    pair = both(saved(tmp_path, family, positions=positions, max_length=13))
    found = check_alike(pair, requests_of((11, 1, 5), 13), DecodingOptions(beam=3, nbest=2, max_extra=37))
    assert max(len(each.tokens) for hypotheses in found.values() for each in hypotheses) <= 13


@pytest.mark.parametrize("positions", ["rotary", "alibi", "relative_buckets"])
@pytest.mark.parametrize("window", [1, 2, 5])
def test_windows_look_back_along_a_hypothesis(tmp_path, window, positions):
    stack = {"num_layers": 4, "local_window": window}
    for family in ("encoder_decoder", "decoder_only"):
        pair = both(saved(tmp_path, family, stack=stack, positions=positions))
        check_alike(pair, requests_of((0, 1, 7, 19), 17), DecodingOptions(beam=5, nbest=5, max_extra=23))


def test_long_hypotheses_that_branch_often(pair):
    """Paths and caches grow several times."""
    options = DecodingOptions(beam=11, nbest=5, min_length=41, max_length=47)
    check_alike(pair, requests_of((1, 5, 11), 19), options)


SAMPLINGS = {
    "all": SamplingOptions(seed=3),
    "cold": SamplingOptions(0.5, seed=5),
    "hot": SamplingOptions(3.0, seed=5),
    "coldest": SamplingOptions(0.001, seed=5),
    "top 1": SamplingOptions(top_k=1),
    "top 5": SamplingOptions(top_k=5, seed=2**64 - 1),
    "top of more than there are": SamplingOptions(1.5, top_k=2**31 - 1, seed=7),
    "nucleus": SamplingOptions(0.7, top_p=0.9, seed=11),
    "small nucleus": SamplingOptions(top_p=0.01, seed=11),
    "whole nucleus": SamplingOptions(top_p=1.0, seed=11),
    "nucleus of the top": SamplingOptions(1.3, top_k=17, top_p=0.6, seed=13),
}


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_it_draws_what_torch_draws(pair, sampling):
    options = DecodingOptions(nbest=3, max_extra=13, sampling=sampling, min_length=2)
    requests = requests_of(MIXED, 23, [[17], [19, 23]])
    requests[5] = replace(requests[5], draw=(2**63 + 5, 7))
    found, expected = (by_index(decode(model, requests, options, 7)) for model in pair)
    same = total = 0
    for index in expected:
        own, other = (sorted(each.tokens for each in side[index]) for side in (found, expected))
        total += sum(map(len, other))
        same += sum(len(one) for one, two in zip(own, other, strict=True) if one == two)
    # Unless a number falls between two floats that are as close as the engines are.
    assert total > 100 and same >= 0.99 * total


def test_samples_begin_with_their_prefix(pair):
    options = DecodingOptions(nbest=5, max_extra=13, sampling=SamplingOptions(seed=1))
    requests = requests_of((1, 5, 0), 29, [[17, 19, 23], [29]])
    for index, hypotheses in by_index(decode(pair[0], requests, options, 3)).items():
        prefix = list(requests[index].prefix)
        assert len(hypotheses) == 5
        assert all(each.tokens[: len(prefix)] == prefix for each in hypotheses)
        assert len({tuple(each.tokens) for each in hypotheses}) > 1


def test_samples_come_in_the_order_of_their_numbers(core):
    requests = requests_of((1, 5, 0), 29)

    def found(nbest):
        options = DecodingOptions(nbest=nbest, max_extra=13, sampling=SamplingOptions(seed=1))
        return {n: [h.tokens for h in each] for n, each in by_index(decode(core, requests, options, 3)).items()}

    few, more = found(3), found(7)
    assert few == {n: each[:3] for n, each in more.items()}


def says_the_same_often(model) -> None:
    model.output.weight[17:67] = model.output.weight[17]
    model.output.weight[END] = model.output.weight[17]


@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
def test_tokens_of_one_probability_come_in_their_order(tmp_path, family):
    pair = both(saved(tmp_path, family, says_the_same_often))
    requests = requests_of((1, 5, 11, 3), 47)
    for beam in (1, 3, 7):
        check_alike(pair, requests, DecodingOptions(beam=beam, nbest=beam, max_extra=5))
    for sampling in (SamplingOptions(top_k=5), SamplingOptions(top_k=23, top_p=0.7), SamplingOptions(top_p=0.3)):
        options = DecodingOptions(nbest=3, max_extra=5, sampling=sampling)
        found, expected = (
            [h.tokens for each in by_index(decode(model, requests, options, 3)).values() for h in each]
            for model in pair
        )
        assert sorted(found) == sorted(expected)


def watched(model, requests, options, at_a_time=7, keep=lambda progress: True):
    """All that a watch is told, by index, and the results."""
    seen: dict[int, list] = {}

    def watch(progress):
        seen.setdefault(progress.index, []).append((progress.tokens, progress.last, progress.likeliest(5)))
        return keep(progress)

    return seen, by_index(chain.from_iterable(decode_stepwise(model, requests, options, at_a_time, watch)))


WATCHED = {
    "greedy": SEARCHES["greedy"],
    "beam": SEARCHES["beam 5"],
    "nbest": DecodingOptions(beam=5, nbest=3),
    "early": SEARCHES["at least 7"],
    "samples": DecodingOptions(nbest=3, max_extra=7, sampling=SamplingOptions(top_k=7, seed=1)),
}


@pytest.mark.parametrize("options", WATCHED.values(), ids=WATCHED)
def test_a_watch_is_told_what_torch_tells(pair, options):
    requests = requests_of(MIXED, 31, [[17], [19, 23]])
    (found, own), (expected, other) = (watched(model, requests, options) for model in pair)
    assert {n: [h.tokens for h in each] for n, each in own.items()} == {
        n: [h.tokens for h in each] for n, each in other.items()
    }
    assert found.keys() == expected.keys()
    for index, steps in expected.items():
        assert [tokens for tokens, _, _ in found[index]] == [tokens for tokens, _, _ in steps]
        for (_, last, likeliest), (_, last_other, likeliest_other) in zip(found[index], steps, strict=True):
            assert last[0] == last_other[0] and last[1] == pytest.approx(last_other[1], abs=1e-4)
            assert [token for token, _ in likeliest] == [token for token, _ in likeliest_other]
            np.testing.assert_allclose([s for _, s in likeliest], [s for _, s in likeliest_other], **CLOSE)


def test_all_likeliest_tokens_are_those_that_may_come(core):
    counts = []
    options = DecodingOptions(beam=1, min_length=3, max_extra=3)
    list(
        decode_stepwise(
            core,
            requests_of([5]),
            options,
            1,
            lambda progress: counts.append(len(progress.likeliest(10**9))) or True,
        )
    )
    # Without the padding and the start; without the end until the shortest length is there.
    assert counts[:3] == [VOCABULARY - 3] * 3
    assert set(counts[3:]) <= {VOCABULARY - 2}


def test_a_watch_gives_up_and_the_others_go_on(pair):
    requests = requests_of(MIXED, 37)
    options = DecodingOptions(beam=3, nbest=3, max_extra=11)
    expected = by_index(decode(pair[0], requests, options, 3))
    _, found = watched(pair[0], requests, options, 3, lambda progress: progress.index % 3 or len(progress.tokens) < 3)
    assert {index: each for index, each in expected.items() if index in found} == found
    assert {index for index in expected if index % 3} <= found.keys() < expected.keys()


def test_slots_of_cancelled_sentences_are_used_again(pair):
    options = DecodingOptions(beam=5, nbest=5, max_extra=7)
    requests = requests_of((29, 3, 31, 1, 19, 0, 23, 5, 2, 11), 41)
    expected = by_index(decode(pair[0], requests, options, 10))
    scheduler = new_scheduler(pair[0], options, 3)
    found = {}
    scheduler.add(requests[:6], lambda progress: True)
    for _ in range(3):
        found |= by_index(scheduler.step())
    for index in (0, 2, 5):
        scheduler.cancel(index)
    scheduler.cancel(997)
    scheduler.add(requests[6:])
    while not scheduler.idle:
        found |= by_index(scheduler.step())
    assert found.keys() >= {1, 3, 4, 6, 7, 8, 9}
    assert all(found[index] == expected[index] for index in found)
    assert scheduler.num_waiting == scheduler.num_running == 0


def test_requests_come_while_others_run(pair):
    options = DecodingOptions(beam=3, nbest=3, max_extra=11)
    requests = requests_of(MIXED * 3, 43)
    expected = by_index(decode(pair[0], requests, options, 64))
    scheduler = new_scheduler(pair[0], options, 5)
    found = {}
    for each in requests:
        scheduler.add([each], lambda progress: True)
        found |= by_index(scheduler.step())
    scheduler.add([])
    while not scheduler.idle:
        found |= by_index(scheduler.step())
    assert found == expected


def test_what_it_says_of_itself(core):
    scheduler = CoreScheduler(core, DecodingOptions(beam=2, max_extra=3), 5)
    assert scheduler.idle and scheduler.num_slots == 5 and scheduler.step() == []
    scheduler.add(requests_of((3, 5, 7)), lambda progress: True)
    assert (scheduler.num_waiting, scheduler.num_running, scheduler.idle) == (3, 0, False)
    scheduler.step()
    assert scheduler.num_waiting + scheduler.num_running <= 3 and not scheduler.idle


def test_a_scheduler_may_go_while_sentences_run(pair):
    options = DecodingOptions(beam=5, max_extra=31)
    expected = by_index(decode(pair[0], requests_of(MIXED), options, 5))
    for threads in (1, 3):
        pair[0].threads = threads
        for steps in range(4):
            scheduler = new_scheduler(pair[0], options, 3)
            scheduler.add(requests_of(MIXED), lambda progress: True)
            for _ in range(steps):
                scheduler.step()
            del scheduler
            gc.collect()
    pair[0].threads = 1
    assert by_index(decode(pair[0], requests_of(MIXED), options, 5)) == expected


def test_two_threads_share_a_model(pair):
    options = DecodingOptions(beam=3, nbest=3, max_extra=11)
    expected = by_index(decode(pair[0], requests_of(MIXED), options, 5))
    found: list = []
    pair[0].threads = 2
    work = [
        threading.Thread(
            target=lambda: found.extend(by_index(decode(pair[0], requests_of(MIXED), options, 5)) for _ in range(5))
        )
        for _ in range(3)
    ]
    for each in work:
        each.start()
    for each in work:
        each.join()
    pair[0].threads = 1
    assert found == [expected] * 15
