"""The translator on a model with random weights: what holds for any model."""

import re
import warnings
from pathlib import Path

import pytest

from heedful.decoding import run
from heedful.decoding.options import DecodingOptions, SamplingOptions
from heedful.decoding.run import decode
from heedful.errors import UserError
from heedful.tasks.computing import Computing
from heedful.tasks.translation import pipeline as translator_module
from heedful.tasks.translation.evaluation import TranslationScores, evaluate_translation
from heedful.tasks.translation.lines import LineSettings
from heedful.tasks.translation.pipeline import LongTextWarning, Translator

TEXTS = ["a red dog runs", "", "the sea is blue and the sun is red", " ", "dog"]


def test_one_translation_per_text_and_blank_for_blank(translator: Translator) -> None:
    found = translator.translate(TEXTS, beam=3, nbest=2)
    assert [bool(each.tokens) or not text.strip() for each, text in zip(found, TEXTS, strict=True)] == [True] * 5
    assert found[1].text == found[3].text == ""
    assert [len(each.nbest) for each in found] == [2, 0, 2, 0, 2]
    assert found[0].nbest[0].text == found[0].text
    assert found[0].nbest[0].score >= found[0].nbest[1].score
    # Random weights write bytes that are no characters, which tokens name.
    labelled = re.split("<([89A-F][0-9A-F])>", "".join(found[0].tokens).removeprefix(" "))
    joined = b"".join(bytes.fromhex(each) if n % 2 else each.encode() for n, each in enumerate(labelled))
    assert joined.decode("utf-8", "replace") == found[0].text


def test_a_single_text_is_fine(translator: Translator) -> None:
    assert translator.translate("dog").text == translator.translate(["dog"])[0].text


def test_scores_need_counterparts(translator: Translator) -> None:
    with pytest.raises(UserError, match="2 sources, but 1 targets"):
        translator.score(["a", "b"], ["a"])


def test_long_texts_are_translated_in_pieces_with_joined_alignments(translator: Translator) -> None:
    text = "the red dog is red " * 9
    with pytest.warns(LongTextWarning, match="subwords without a sentence end, and the model takes 23") as caught:
        (found,) = translator.translate(["dog", text], DecodingOptions(beam=1, max_length=7), alignment=True)[1:]
    assert caught[0].message.index == 1
    assert found.alignment is not None
    assert max(source for source, _ in found.alignment) > 9
    assert [target for _, target in found.alignment] == list(range(len(found.alignment)))


def test_a_model_can_take_longer_texts_when_told(translator: Translator) -> None:
    text = "the red dog is red. " * 9
    translator.model.resize_positions(401)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = translator.translate(text, DecodingOptions(beam=1, max_length=3), split="none")
        assert len(found.tokens) <= 3  # one piece of at most so many, not several joined
    finally:
        translator.model.resize_positions(23)


def test_samples_depend_on_seed_and_number_alone(translator: Translator) -> None:
    options = DecodingOptions(max_length=9, sampling=SamplingOptions(temperature=1.5, seed=3))
    together = translator.translate(TEXTS, options, first_index=10)
    alone = translator.translate(TEXTS[2:3], options, first_index=12)
    assert together[2].tokens == alone[0].tokens
    assert together[2].token_scores == alone[0].token_scores


def test_the_prefix_comes_first(translator: Translator) -> None:
    assert all(
        each.text.startswith("red dog") for each in translator.translate(["dog", "sea"], prefix="red dog", beam=2)
    )


@pytest.mark.filterwarnings("ignore::heedful.tasks.translation.answers.UnevenPairWarning")
def test_scores_do_not_depend_on_how_the_pairs_are_batched(translator: Translator, monkeypatch) -> None:
    sources, targets = ["dog", "a red dog", "sea " * 70], ["sun", "the sea " * 50, "dog"]
    together = translator.score(sources, targets)
    monkeypatch.setattr("heedful.tasks.translation.with_torch.SCORED_LOGITS", 1)
    alone = translator.score(sources, targets)
    for one, other in zip(together, alone, strict=True):
        assert one.token_scores == pytest.approx(other.token_scores, abs=1e-5)
        assert one.log_probability == pytest.approx(sum(one.token_scores))


REPEATED = ["dog", "the sea is blue", "", "dog", "a red dog runs", "the sea is blue", "dog"]
# A long line, whose pieces are those of another, and one of which is a line of its own.
REPEATED += ["the red dog is red. " * 5, "sun", "the red dog is red. " * 9, "the red dog is red.", "dog"]


def decoded_indices(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the requests that come to be decoded from now on."""
    indices: list[int] = []

    def watched(model, requests, options, max_sentences):
        indices.extend(request.index for request in requests)
        return decode(model, requests, options, max_sentences)

    monkeypatch.setattr(run, "decode", watched)
    return indices


@pytest.mark.filterwarnings("ignore::heedful.tasks.translation.answers.LongTextWarning")
@pytest.mark.parametrize(("prefix", "batch_size"), [("", 5), ("red", 2)])
def test_what_repeats_is_decoded_once_with_the_same_result(translator, monkeypatch, prefix: str, batch_size: int):
    options = DecodingOptions(beam=3, nbest=2, max_length=9)
    settings = {"prefix": prefix, "alignment": True, "batch_size": batch_size, "first_index": 7}
    indices = decoded_indices(monkeypatch)
    shared = translator.translate(REPEATED, options, **settings)
    once = len(indices)
    requests = [each for text in translator.prepare(REPEATED, prefix) for each in text.requests(range(99))]
    assert once == len({(tuple(each.source), tuple(each.prefix)) for each in requests}) < len(requests) - 5
    monkeypatch.setattr(
        translator_module,
        "distinct_requests",
        lambda all_of_them, _: (all_of_them, [each.index for each in all_of_them]),
    )
    assert translator.translate(REPEATED, options, **settings) == shared
    assert len(indices) - once == len(requests)


@pytest.mark.filterwarnings("ignore::heedful.tasks.translation.answers.LongTextWarning")
def test_samples_of_what_repeats_are_drawn_each_for_itself(translator: Translator, monkeypatch) -> None:
    options = DecodingOptions(nbest=2, max_length=9, sampling=SamplingOptions(temperature=1.5, seed=3))
    indices = decoded_indices(monkeypatch)
    found = translator.translate(["dog"] * 5, options, first_index=11)
    assert len(indices) == 5
    assert len({each.text for each in found}) == 5
    assert found[3:] == translator.translate(["dog"] * 2, options, first_index=14)


def test_blank_pairs_do_not_count_in_an_evaluation(untrained_model: Path) -> None:
    settings = LineSettings(str(untrained_model), DecodingOptions(beam=1, max_length=5), Computing())
    sources, references = ["red dog", "dog"], ["dog", "red"]
    told: list[tuple[int, str]] = []

    def measured(*blank: tuple[str, str]) -> TranslationScores:
        pairs = [*zip(sources, references, strict=True), *blank]
        columns = [list(each) for each in zip(*pairs, strict=True)]
        return evaluate_translation(settings, 1, *columns, lambda number, text: told.append((number, text)))

    found, expected = measured(("", ""), (" ", "\t"), ("", "")), measured()
    assert (found.perplexity, found.bleu, found.sentences) == (expected.perplexity, expected.bleu, 2)
    assert not told
    found = measured(("", "dog"))
    assert (found.perplexity, found.sentences) == (expected.perplexity, 3)
    assert told == [(3, "has a blank source: it counts as a blank translation in BLEU and chrF")]
    with pytest.raises(UserError, match="all sources are blank"):
        evaluate_translation(settings, 1, ["", " "], ["", "x"], lambda number, text: None)


@pytest.mark.parametrize("texts", [5, b"dog", ["dog", None], [3]])
def test_what_is_not_text_is_refused_in_words(translator: Translator, texts: object) -> None:
    with pytest.raises(UserError, match="expected a string"):
        translator.translate(texts)  # type: ignore[arg-type]


def test_a_translation_may_not_be_limited_to_nothing(translator: Translator) -> None:
    with pytest.raises(UserError, match="max_length is 0, but a translation has at least one subword"):
        translator.translate("red dog", DecodingOptions(max_length=0))
