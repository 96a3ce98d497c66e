"""Shortlists in the engine: what torch finds, with bits that depend on nothing else, and lists that are refused."""

import random
from ctypes import c_int32
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core_folders import core_model, family_settings, instructions, known_instructions, save, texts, torch_model
from heedful.core.interface import CoreRequest, check, engine
from heedful.core.model import CoreModel
from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.decoding.run import decode_stepwise
from heedful.errors import UserError
from heedful.models.shortlist_output import ShortlistOutput
from heedful.text import shortlist as shortlists
from heedful.text.shortlist import Shortlist

VOCABULARY, END = 4001, 2
# Of the frequent tokens: so many weights that threads divide them, also those of 8 bits; and few.
MANY, FEW = 3203, 61
CLOSE = {"rtol": 1e-5, "atol": 1e-4}
LENGTHS = (0, 1, 5, 29, 3, 16, 2, 13, 31, 7)
OPTIONS = {
    "greedy": DecodingOptions(beam=1, max_extra=5),
    "beam": DecodingOptions(beam=5, nbest=5, max_extra=5),
    "at least 7": DecodingOptions(beam=3, nbest=3, min_length=7, max_extra=5),
    "samples": DecodingOptions(nbest=3, max_extra=5, sampling=SamplingOptions(1.3, seed=3)),
    "likeliest samples": DecodingOptions(nbest=2, max_extra=5, sampling=SamplingOptions(0.9, top_k=7, seed=5)),
    "nucleus": DecodingOptions(nbest=2, max_extra=5, sampling=SamplingOptions(0.9, top_p=0.8, seed=7)),
}


def ends_now_and_then(model) -> None:
    model.output.weight[END] *= 1.5


def made(frequent: int, per_token: int = 11, seed: int = 7) -> Shortlist:
    """A shortlist of random tokens; special tokens call for none."""
    draw = np.random.default_rng(seed)
    order = np.concatenate([[END], 3 + draw.permutation(VOCABULARY - 3)])
    likely = draw.choice(order[frequent:], (VOCABULARY, per_token))
    strengths = draw.random(likely.shape, np.float32)
    strengths[:3] = 0
    return Shortlist(order[:frequent], likely, strengths)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    changes = {"vocabulary_size": VOCABULARY, "width": 66, "tied_output": False, "embedding": {"scaled": True}}
    settings = family_settings("encoder_decoder", {**changes, "output_bias": True}, norm="pre")
    place = tmp_path_factory.mktemp("models") / "model"
    return save(place, "encoder_decoder", settings, change=ends_now_and_then, output=1.5)


def requests_of(lengths=LENGTHS, seed=1) -> list[Request]:
    return [Request(number, source) for number, source in enumerate(texts(lengths, seed, VOCABULARY))]


def decoded(model, requests, options, at_a_time=7) -> dict:
    return {each.index: each.hypotheses for each in decode(model, requests, options, at_a_time)}


def check_close(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for index, hypotheses in expected.items():
        assert [each.tokens for each in found[index]] == [each.tokens for each in hypotheses]
        assert [each.finished for each in found[index]] == [each.finished for each in hypotheses]
        for own, other in zip(found[index], hypotheses, strict=True):
            np.testing.assert_allclose(own.token_scores, other.token_scores, **CLOSE)
            np.testing.assert_allclose(own.score, other.score, **CLOSE)


@pytest.fixture(scope="module", params=[MANY, FEW])
def pair(request, folder):
    """The same model with the same shortlist by both engines."""
    shortlist, network = made(request.param), torch_model(folder)
    network.shortlist = ShortlistOutput(shortlist, network.output)
    return core_model(folder, shortlist=shortlist, threads=2), network


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_it_finds_what_torch_finds(pair, options):
    requests = requests_of()
    found, expected = (decoded(model, requests, options) for model in pair)
    check_close(found, expected)
    core = pair[0]
    for request in requests:
        allowed = {*core.shortlist.frequent_F.tolist(), *core.own_tokens(core.frame(request.source)[0])}
        assert {token for each in found[request.index] for token in each.tokens} <= allowed
    used = {token for hypotheses in found.values() for each in hypotheses for token in each.tokens}
    assert len(core.shortlist.frequent_F) == MANY or used - set(core.shortlist.frequent_F.tolist())


def test_a_watch_is_told_what_torch_tells(pair):
    options = DecodingOptions(beam=3, min_length=2, max_extra=3)
    told: list[dict] = []
    for model in pair:
        seen: dict[int, list] = {}

        def watch(progress, seen=seen):
            seen.setdefault(progress.index, []).append((progress.tokens, progress.likeliest(5)))
            return True

        list(decode_stepwise(model, requests_of((1, 5, 3)), options, 2, watch))
        told.append(seen)
    assert told[0].keys() == told[1].keys() == {0, 1, 2}
    for index, steps in told[1].items():
        assert [tokens for tokens, _ in told[0][index]] == [tokens for tokens, _ in steps]
        for (_, found), (_, expected) in zip(told[0][index], steps, strict=True):
            assert [token for token, _ in found] == [token for token, _ in expected]
            np.testing.assert_allclose([s for _, s in found], [s for _, s in expected], **CLOSE)


@pytest.mark.parametrize("name", known_instructions())
@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize("options", [OPTIONS["beam"], OPTIONS["nucleus"]], ids=["beam", "sampling"])
def test_bits_depend_on_the_sentence_alone(folder, options, int8, name):
    requests = requests_of(LENGTHS if name == "portable" else LENGTHS * 3)
    with instructions(name):
        model = core_model(folder, int8=int8, shortlist=made(MANY))
    expected = decoded(model, requests, options, 64)
    for at_a_time, threads in ((1, 1), (7, 3), (64, 2)):
        random.Random(at_a_time).shuffle(requests)
        model.threads = threads
        chosen = requests if at_a_time > 1 else requests[:5]
        assert decoded(model, chosen, options, at_a_time) == {each.index: expected[each.index] for each in chosen}
    for each in requests[:3]:  # alone, so that threads divide its products
        assert decoded(model, [each], options, 1) == {each.index: expected[each.index]}


@pytest.mark.parametrize("name", known_instructions())
@pytest.mark.parametrize("int8", [False, True], ids=["fp32", "int8"])
def test_logits_are_those_of_the_whole_output_layer(folder, tmp_path, int8, name):
    """A model that says nothing but what a shortlist allows finds the same without it."""
    shortlist = made(FEW)
    config = {"vocabulary_size": VOCABULARY, "width": 66, "tied_output": False, "embedding": {"scaled": True}}
    settings = family_settings("encoder_decoder", {**config, "output_bias": True}, norm="pre")
    for request in requests_of((5, 13)):
        with instructions(name):
            short = core_model(folder, int8=int8, shortlist=shortlist)
        allowed = [*shortlist.frequent_F, *short.own_tokens(short.frame(request.source)[0])]

        def silence(model, allowed=allowed) -> None:
            ends_now_and_then(model)
            others = np.setdiff1d(np.arange(VOCABULARY), allowed)
            model.output.bias[others] = -1e4

        silenced = save(tmp_path / str(request.index), "encoder_decoder", settings, change=silence, output=1.5)
        with instructions(name):
            whole = core_model(silenced, int8=int8)
        check_close(*(decoded(model, [request], OPTIONS["beam"]) for model in (short, whole)))


def test_more_own_tokens_than_a_tile(folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlists, "LONGEST_SHORTLIST", 700)
    some = made(FEW)
    own = some.likely_VE[3:70].ravel()
    own = own[np.sort(np.unique(own, return_index=True)[1])][:601]  # three tiles of 256
    likely, falling = np.tile(own, (VOCABULARY, 1)), np.linspace(1, 0.1, len(own), dtype=np.float32)
    parted = Shortlist(some.frequent_F, likely, np.tile(falling, (VOCABULARY, 1)))
    joined = Shortlist(np.concatenate([some.frequent_F, own]), likely, np.zeros(likely.shape, np.float32))
    requests = requests_of((5, 1, 13))
    for options in (OPTIONS["beam"], OPTIONS["samples"]):
        check_close(*(decoded(core_model(folder, shortlist=each), requests, options) for each in (parted, joined)))


def test_sources_that_call_for_nothing(folder) -> None:
    shortlist = made(FEW)
    none = Shortlist(shortlist.frequent_F, shortlist.likely_VE, np.zeros(shortlist.likely_VE.shape, np.float32))
    found = decoded(core_model(folder, shortlist=none), requests_of((3, 0)), OPTIONS["beam"])
    assert {token for h in found.values() for each in h for token in each.tokens} <= set(none.frequent_F.tolist())


def test_what_needs_any_token_is_refused(pair) -> None:
    for model in pair:
        with pytest.raises(UserError, match="a prefix may need any subword"):
            decoded(model, [Request(0, [17], [19])], OPTIONS["beam"])
        for more in ({"no_repeat_ngram": 2}, {"repetition_penalty": 1.1}):
            with pytest.raises(UserError, match="rules against repetition"):
                decoded(model, requests_of((3,)), DecodingOptions(**more))


def test_a_source_with_a_strange_token_is_refused(folder) -> None:
    with pytest.raises(UserError, match=f"token {VOCABULARY} is not in the vocabulary"):
        decoded(core_model(folder, shortlist=made(FEW)), [Request(0, [17, VOCABULARY])], OPTIONS["beam"])


@pytest.mark.parametrize(
    ("frequent", "message"),
    [
        ([], "has 0 frequent tokens"),
        ([END] * (VOCABULARY + 1), f"has {VOCABULARY + 1} frequent tokens"),
        ([17, END], "must begin with the end"),
        ([END, 17, 17], "token 17 of a shortlist is special, or comes twice"),
        ([END, 17, END], "token 2 of a shortlist is special, or comes twice"),
        ([END, 0], "token 0 of a shortlist is special"),
        ([END, VOCABULARY], f"token {VOCABULARY} of a shortlist is not in the vocabulary"),
    ],
)
def test_frequent_tokens_that_cannot_be(folder, frequent, message) -> None:
    with pytest.raises(UserError, match=message):
        core_model(folder, shortlist=replace(made(FEW), frequent_F=np.array(frequent, np.int64)))


def add(model: CoreModel, own: list[int], length: int | None = None, prefix: int = 0) -> None:
    scheduler = model.new_scheduler(DecodingOptions(), 3)
    source = (c_int32 * 3)(17, 19, END)
    request = CoreRequest(
        source=source,
        prefix=source,
        shortlist=(c_int32 * len(own))(*own),
        source_length=3,
        prefix_length=prefix,
        shortlist_length=len(own) if length is None else length,
        first=1,
        longest=5,
    )
    check(engine().heedful_decoder_add(scheduler.handle, (CoreRequest * 1)(request), 1))
    while not scheduler.idle:
        scheduler.step()


def test_requests_with_lists_that_cannot_be(folder) -> None:
    model = core_model(folder, shortlist=made(FEW))
    frequent = model.shortlist.frequent_F.tolist()
    own = [token for token in range(3, VOCABULARY) if token not in frequent]
    for wrong in ([-1], [VOCABULARY], [2**31 - 1], [*own[:5], VOCABULARY]):
        with pytest.raises(UserError, match="is not in the vocabulary"):
            add(model, wrong)
    for wrong in ([own[0], own[1], own[0]], [frequent[3]], [END], [0], [*own, own[7]]):
        with pytest.raises(UserError, match="is special, or comes twice"):
            add(model, wrong)
    for length in (-1, -(2**31), VOCABULARY + 1, 2**31 - 1):
        with pytest.raises(UserError, match=f"a shortlist of {length} tokens"):
            add(model, own[:3], length)
    with pytest.raises(UserError, match="a forced prefix may need any token"):
        add(model, own[:3], prefix=2)
    for good in ([], own[:1], own):  # all that there are, in 16 tiles
        add(model, good)
    with pytest.raises(UserError, match="but its model has none"):
        add(core_model(folder), own[:1])


def test_a_shortlist_comes_once_and_before_the_end(folder) -> None:
    model = core_model(folder, shortlist=made(FEW))
    with pytest.raises(UserError, match="before the model is finished"):
        check(engine().heedful_model_shortlist(model.handle, (c_int32 * 1)(END), 1))


def test_language_models_have_none(tmp_path) -> None:
    settings = family_settings("decoder_only", {"vocabulary_size": VOCABULARY})
    with pytest.raises(UserError, match="only models that translate have a shortlist"):
        core_model(save(tmp_path, "decoder_only", settings), shortlist=made(FEW))
