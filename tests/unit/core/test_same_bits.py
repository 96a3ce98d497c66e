"""The engine's bits do not depend on batches, neighbours, their order or threads, with any instructions; and int8."""

import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from core_folders import core_model, family_settings, instructions, known_instructions, save, texts
from heedful.core.model import CoreModel
from heedful.core.sequences import encode, score_targets
from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode

VOCABULARY, END = 1031, 2
INSTRUCTIONS = known_instructions()
OPTIONS = {
    "beam": DecodingOptions(beam=5, nbest=5, max_extra=5),
    "sampling": DecodingOptions(nbest=2, max_extra=5, sampling=SamplingOptions(0.7, top_p=0.95, seed=3)),
}
# Layers of so many weights that threads divide them: 200 kB and more.
WIDE = {"feed_forward": {"inner_width": 769}}
WIDTH = 66


def ends_now_and_then(model) -> None:
    model.output.weight[END] *= 1.5


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    sizes = {"vocabulary_size": VOCABULARY, "width": WIDTH, "max_length": 1201}
    found = {}
    for family in ("encoder_decoder", "decoder_only"):
        changes = {**sizes, "tied_output": False, "embedding": {"scaled": True}}
        settings = family_settings(family, changes, norm="pre", **WIDE)
        found[family] = save(place / family, family, settings, change=ends_now_and_then, output=1.0)
    settings = family_settings("encoder_only", {**sizes, "head": "masked"}, **WIDE)
    found["encoder_only"] = save(place / "encoder_only", "encoder_only", settings)
    return found


@pytest.fixture(scope="module")
def model_of(folders):
    """A model by its family, its precision and the instructions that it is packed for."""

    def made(family: str, int8: bool, name: str = INSTRUCTIONS[-1]) -> CoreModel:
        with instructions(name):
            return core_model(folders[family], int8=int8)

    return cache(made)


def requests_of(count: int) -> list[Request]:
    draw = random.Random(1)
    lengths = [draw.choice((0, 1, 3, 5, 11, 17)) for _ in range(count)]
    return [Request(n, source, [17, 19][: n % 5 % 3]) for n, source in enumerate(texts(lengths, 1, VOCABULARY))]


def decoded(model: CoreModel, requests: list[Request], options: DecodingOptions, at_a_time: int) -> dict:
    return {each.index: each.hypotheses for each in decode(model, requests, options, at_a_time)}


@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
def test_decoding(model_of, family, options, int8, name):
    model, requests = model_of(family, int8, name), requests_of(131 if name == INSTRUCTIONS[-1] else 23)
    model.threads = 1
    expected = decoded(model, requests, options, 128)
    for at_a_time, threads in ((1, 1), (1, 2), (7, 3), (64, 2), (128, 3)):
        random.Random(at_a_time).shuffle(requests)
        model.threads = threads
        chosen = requests if at_a_time > 1 else requests[:11]
        found = decoded(model, chosen, options, at_a_time)
        assert found == {each.index: expected[each.index] for each in chosen}
    for each in requests[:5]:  # alone, so that threads divide its products
        assert decoded(model, [each], options, 1) == {each.index: expected[each.index]}
    assert len({len(hypotheses[0].tokens) for hypotheses in expected.values()}) > 5


@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize("search", [{"beam": 1}, {"beam": 7}, {"sampling": SamplingOptions(1.3, seed=3)}], ids=str)
@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only"])
def test_long_sources_and_outputs_that_never_end(model_of, family, search, int8):
    model, sources = model_of(family, int8), texts((3, 700, 41, 0, 290), 5, VOCABULARY)
    # Limits of their own, so that short outputs are decoded beside a long one; the end is forbidden until then.
    longest = (13, 47, 307, 5, 1)
    requests = [Request(n, source, max_length=longest[n]) for n, source in enumerate(sources)]
    options = DecodingOptions(min_length=320, max_extra=1, **search)
    model.threads = 1
    expected = decoded(model, requests, options, 64)
    assert [len(expected[n][0].tokens) for n in range(5)] == [*longest]
    for at_a_time, threads in ((1, 1), (1, 3), (2, 2)):
        model.threads = threads
        assert decoded(model, requests[::-1], options, at_a_time) == expected


@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
def test_scores(model_of, int8, name):
    model = model_of("encoder_decoder", int8, name)
    lengths = (1, 3, 17, 5, 2, 29, 1, 11, 16, 7)
    sources, targets = texts(lengths, 3, VOCABULARY), texts(lengths[::-1], 5, VOCABULARY)

    def scored(order: list[int], at_a_time: int) -> dict:
        found = {}
        for first in range(0, len(order), at_a_time):
            part = order[first : first + at_a_time]
            scores, weights = score_targets(model, [sources[n] for n in part], [targets[n] for n in part], align=True)
            found |= {n: (a.tolist(), b.tolist()) for n, a, b in zip(part, scores, weights, strict=True)}
        return found

    model.threads = 1
    expected = scored(list(range(10)), 10)
    for at_a_time, threads in ((1, 1), (1, 2), (3, 2), (7, 3), (10, 3)):
        model.threads = threads
        assert scored(random.Random(threads).sample(range(10), 10), at_a_time) == expected


@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize(("int8", "bound"), [(False, 1e-5), (True, 0.01)], ids=["fp32", "int8"])
def test_scores_are_those_of_decoding(model_of, int8, bound, name):
    """But for the order of sums over keys, and for values that are thereby rounded to other bytes."""
    model, requests = model_of("encoder_decoder", int8, name), requests_of(23)
    model.threads = 2
    for index, (best, *_) in decoded(model, requests, OPTIONS["beam"], 7).items():
        source = model.frame(requests[index].source)[0]
        (scores,), _ = score_targets(model, [source], [best.tokens])
        np.testing.assert_allclose(best.token_scores, scores[: len(best.token_scores)], atol=bound)


@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize(("pooling", "head"), [(0, False), (0, True), (1, False), (2, False)])
def test_encoding(model_of, pooling, head, int8, name):
    model = model_of("encoder_only", int8, name)
    rows = texts((1, 3, 17, 5, 2, 29, 1, 11, 16, 7), 7, VOCABULARY)
    width = VOCABULARY if head else WIDTH

    def encoded(order: list[int], at_a_time: int) -> dict:
        found = {}
        for first in range(0, len(order), at_a_time):
            part = order[first : first + at_a_time]
            made = encode(model, [rows[n] for n in part], None, pooling=pooling, head=head, width=width)
            found |= {n: each.tolist() for n, each in zip(part, made, strict=True)}
        return found

    model.threads = 1
    expected = encoded(list(range(10)), 10)
    for at_a_time, threads in ((1, 1), (1, 2), (3, 2), (7, 3), (10, 3)):
        model.threads = threads
        assert encoded(random.Random(threads).sample(range(10), 10), at_a_time) == expected


def test_more_tokens_than_go_through_at_a_time(model_of):
    model = model_of("encoder_only", False)
    rows = texts([29] * 151, 11, VOCABULARY)
    model.threads = 2
    together = encode(model, rows, None, pooling=2, head=False, width=WIDTH)
    alone = [encode(model, [row], None, pooling=2, head=False, width=WIDTH)[0] for row in rows]
    assert np.array_equal(np.stack(together), np.stack(alone))
    scoring = model_of("encoder_decoder", False)
    found, _ = score_targets(scoring, rows, rows[::-1])
    for place in (0, 73, 150):
        assert np.array_equal(found[place], score_targets(scoring, [rows[place]], [rows[150 - place]])[0][0])


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_other_instructions_give_nearly_the_same(model_of, name):
    lengths = (1, 3, 17, 5, 2, 29)
    pair = texts(lengths, 3, VOCABULARY), texts(lengths[::-1], 5, VOCABULARY)
    found = []
    for each in ("portable", name):
        scores, weights = score_targets(model_of("encoder_decoder", False, each), *pair, align=True)
        found.append(np.concatenate([*scores, *(each.ravel() for each in weights)]))
    np.testing.assert_allclose(*found, rtol=1e-5, atol=2e-5)
