"""What users call, by both engines: translating, scoring, aligning, continuing, embedding, labelling, filling in."""

import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import heedful
from core_folders import family_settings, save
from heedful.core.model import CoreModel
from heedful.decoding import DecodingOptions, SamplingOptions
from heedful.errors import UserError
from heedful.tasks.language_modeling.generation import GenerationOptions
from heedful.text.shortlist import Shortlist
from heedful.text.tokenizer import Tokenizer

WORDS = "the red dog sees a blue cat in my old house . it runs , and 17 birds sing !"
TEXTS = ["the red dog", "", "a cat", "the old house . it runs , and 17 birds sing !", "x", "blue " * 13, "the red dog"]
CLOSE = {"rtol": 1e-5, "atol": 1e-4}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([WORDS], 277)


@pytest.fixture(scope="module")
def load_both(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory):
    """The pipeline of a model by the engine and by torch."""

    def load(family: str, max_length: int | None = None, **changes):
        sizes = {"vocabulary_size": tokenizer.vocabulary_size, "embedding": {"scaled": True, "segments": 2}}
        if family != "encoder_only":
            sizes["tied_output"] = False
        folder = tmp_path_factory.mktemp(family)
        settings = family_settings(family, {**sizes, **changes}, norm="pre")
        save(folder, family, settings, tokenizer=tokenizer, output=1.5, change=ends_now_and_then)
        return [heedful.load(folder, engine=engine, max_length=max_length) for engine in ("core", "torch")]

    return load


def ends_now_and_then(model) -> None:
    if getattr(model.output, "out_features", 0) > 200:
        model.output.weight[2] *= 1.5


@pytest.fixture(scope="module")
def translators(load_both):
    return load_both("encoder_decoder")


@pytest.fixture(scope="module")
def language_models(load_both):
    return load_both("decoder_only")


def check_translations(found, expected) -> None:
    for own, other in zip(found, expected, strict=True):
        assert own.text == other.text and own.tokens == other.tokens
        np.testing.assert_allclose(own.token_scores, other.token_scores, **CLOSE)
        assert own.alignment == other.alignment
        assert [each.text for each in own.nbest or []] == [each.text for each in other.nbest or []]


@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(beam=1, max_extra=7),
        DecodingOptions(beam=5, nbest=3, min_length=3, max_extra=7),
        DecodingOptions(max_extra=7, sampling=SamplingOptions(seed=5, top_k=7)),
    ],
    ids=["greedy", "beam", "samples"],
)
def test_translations(translators, options: DecodingOptions) -> None:
    found, expected = (each.translate(TEXTS, options, alignment=True) for each in translators)
    check_translations(found, expected)
    assert len({each.text for each in found}) > 4


def test_translations_that_begin_as_asked(translators) -> None:
    options = DecodingOptions(beam=3, max_extra=7)
    found, expected = (each.translate(TEXTS, options, prefix="a blue") for each in translators)
    check_translations(found, expected)
    assert all(each.text.startswith("a blue") for each in found if each.tokens)


def test_long_texts_in_pieces(translators) -> None:
    long = ("the red dog sees a blue cat in my old house. " * 5 + "birds " * 97).strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (each.translate([long], DecodingOptions(beam=2, max_extra=3)) for each in translators)
    check_translations(found, expected)
    assert len(found[0].pieces) > 1


def test_longer_texts_than_in_training(load_both) -> None:
    pair = load_both("encoder_decoder", 127, positions="learned")
    found, expected = (each.translate(["birds " * 37], DecodingOptions(beam=2, max_extra=3)) for each in pair)
    check_translations(found, expected)


@pytest.mark.filterwarnings("ignore::heedful.tasks.translation.answers.UnevenPairWarning")
def test_scores(translators) -> None:
    sources, targets = [text or "x" for text in TEXTS], ["a dog", "x", "", "blue cat " * 5, "it runs !", "a", "the"]
    for penalty in (0.0, 0.6, 2.0):
        found, expected = (each.score(sources, targets, length_penalty=penalty) for each in translators)
        for own, other in zip(found, expected, strict=True):
            assert own.score == pytest.approx(other.score, rel=1e-5, abs=1e-4)
            np.testing.assert_allclose(own.token_scores, other.token_scores, **CLOSE)


def test_alternatives(translators) -> None:
    for prefix in ("", "a ", "the r", "a blue cat"):
        found, expected = (each.alternatives(TEXTS[3], prefix, 7) for each in translators)
        assert [each.text for each in found] == [each.text for each in expected] and found
        np.testing.assert_allclose(
            [each.probability for each in found], [each.probability for each in expected], **CLOSE
        )


@pytest.mark.parametrize(
    "options",
    [
        GenerationOptions(max_tokens=37, temperature=0.0),
        GenerationOptions(max_tokens=23, samples=3, seed=5),
        GenerationOptions(max_tokens=97, seed=7),
    ],
    ids=["greedy", "samples", "beyond the context"],
)
@pytest.mark.parametrize("positions", ["rotary", "learned", "sinusoidal", "alibi"])
def test_continuations(load_both, positions: str, options: GenerationOptions) -> None:
    pair = load_both("decoder_only", positions=positions)
    found, expected = (each.generate(["", "the", "a blue cat in"], options) for each in pair)
    assert found == expected
    if options.samples == 1:
        assert "".join(pair[0].stream("the", options)) == found[1][0] or options.seed


def test_texts_by_a_language_model(language_models) -> None:
    for texts in (["the red dog"], TEXTS, ["x"] * 131, [WORDS * 11], [WORDS * 5, "", "", WORDS * 3]):
        found, expected = (each.score(texts) for each in language_models)
        assert (found.tokens, found.bytes) == (expected.tokens, expected.bytes)
        assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    with pytest.raises(UserError, match="no text"):
        language_models[0].score([""])


@pytest.mark.parametrize("pooling", [None, "class_token", "mean"])
def test_vectors(load_both, pooling: str | None) -> None:
    pair = load_both("encoder_only", pooling="class_token", convolution=3)
    texts = [*TEXTS, ("a cat", "the red dog runs"), ("", "x")]
    for normalize in (True, False):
        found, expected = (each.embed(texts, pooling=pooling, normalize=normalize) for each in pair)
        np.testing.assert_allclose(found, expected, **CLOSE)
    assert pair[0].embed([]).shape == (0, 18)


def test_classes(load_both) -> None:
    pair = load_both("encoder_only", head="classes", num_labels=5, pooler=True)
    found, expected = (each.classify([*TEXTS, ("a cat", "a dog")]) for each in pair)
    for own, other in zip(found, expected, strict=True):
        assert [label for label, _ in own.ranking] == [label for label, _ in other.ranking]
        np.testing.assert_allclose([each for _, each in own.ranking], [each for _, each in other.ranking], atol=1e-5)


def test_a_model_of_one_segment_takes_single_texts(load_both) -> None:
    pair = load_both("encoder_only", head="classes", num_labels=5, embedding={"segments": 1})
    np.testing.assert_allclose(*(each.embed(TEXTS) for each in pair), **CLOSE)
    found, expected = (each.classify(TEXTS) for each in pair)
    assert [each.label for each in found] == [each.label for each in expected]
    for each in pair:
        for use in (each.embed, each.classify):
            with pytest.raises(UserError, match="text 2 is a pair, but this model takes single texts"):
                use(["a cat", ("a cat", "a dog")])


def test_tags(load_both) -> None:
    pair = load_both("encoder_only", head="tags", num_labels=7)
    lines = [WORDS.split(), ["x"], ["the", "red", "dog"] * 23]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (each.tag(lines) for each in pair)
    for own, other in zip(found, expected, strict=True):
        assert [(each.word, each.tag) for each in own] == [(each.word, each.tag) for each in other]
        np.testing.assert_allclose([each.probability for each in own], [each.probability for each in other], atol=1e-5)


def test_what_is_filled_in(load_both) -> None:
    pair = load_both("encoder_only", head="masked", special_tokens={"mask": 3})
    found, expected = (each.fill("the [MASK] dog sees [MASK]") for each in pair)
    assert len(found) == 2
    for own, other in zip(found, expected, strict=True):
        assert [each.token for each in own] == [each.token for each in other] and len(own) == 5
        np.testing.assert_allclose([each.probability for each in own], [each.probability for each in other], atol=1e-5)


def test_threads_translate_with_one_model(translators) -> None:
    options = DecodingOptions(beam=3, nbest=2, max_extra=5)
    expected = translators[0].translate(TEXTS, options)
    found: list = []
    work = [
        threading.Thread(target=lambda: found.extend(translators[0].translate(TEXTS, options) for _ in range(5)))
        for _ in range(2)
    ]
    for each in work:
        each.start()
    for each in work:
        each.join()
    assert found == [expected] * 10


@pytest.mark.parametrize("family", ["encoder_decoder", "decoder_only", "encoder_only"])
def test_all_families_with_weights_of_8_bits(tokenizer: Tokenizer, tmp_path: Path, family: str) -> None:
    settings = family_settings(family, {"vocabulary_size": tokenizer.vocabulary_size, "width": 66}, norm="pre")
    folder = save(tmp_path, family, settings, tokenizer=tokenizer, output=1.0)
    exact, rounded = (heedful.load(folder, engine="core", precision=each) for each in ("fp32", "int8"))
    if family == "encoder_decoder":
        found = [each.score(TEXTS[0], TEXTS[2]).score for each in (exact, rounded)]
    elif family == "decoder_only":
        found = [each.score(TEXTS).loss for each in (exact, rounded)]
    else:
        found = [each.embed(TEXTS) for each in (exact, rounded)]
    np.testing.assert_allclose(*found, atol=0.07)
    assert not np.array_equal(*found)


def test_translators_with_a_shortlist(load_both) -> None:
    folder = load_both("encoder_decoder")[0].model.folder
    draw = np.random.default_rng(3)
    order = np.concatenate([[2], 3 + draw.permutation(277 - 3)])
    likely, strengths = draw.choice(order[31:], (277, 5)), draw.random((277, 5), np.float32)
    Shortlist(order[:31], likely, strengths).save(folder)
    core, by_torch = (heedful.load(folder, shortlist=True, engine=engine) for engine in ("auto", "torch"))
    assert isinstance(core.model, CoreModel)
    options = DecodingOptions(beam=3, nbest=3, min_length=3, max_extra=7)
    found, expected = (each.translate(TEXTS, options, alignment=True) for each in (core, by_torch))
    check_translations(found, expected)
    assert [each.text for each in found] != [each.text for each in heedful.load(folder).translate(TEXTS, options)]
    # What is looked into is what is translated.
    assert core.attention("a cat").texts == by_torch.attention("a cat").texts
    for each in (core, by_torch):
        with pytest.raises(UserError, match="a prefix may need any subword"):
            each.translate("a cat", prefix="the")
        with pytest.raises(UserError, match="a next word may be any subword"):
            each.alternatives("a cat")
    with pytest.raises(UserError, match="only Transformers that translate have a shortlist"):
        heedful.load(load_both("decoder_only")[0].model.folder, shortlist=True)
