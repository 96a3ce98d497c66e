"""The translator on a model with random weights: what holds for any model."""

import itertools
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.decoding import run
from heedful.decoding.options import DecodingOptions, SamplingOptions
from heedful.decoding.run import decode
from heedful.errors import UserError
from heedful.model_folder import LoadedModel, ModelConfig
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.settings.attention import AttentionConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.stack import StackConfig
from heedful.tasks.computing import Computing
from heedful.tasks.translation import pipeline as translator_module
from heedful.tasks.translation.answers import UnevenPairWarning
from heedful.tasks.translation.evaluation import TranslationScores, evaluate_translation
from heedful.tasks.translation.lines import LineSettings
from heedful.tasks.translation.pipeline import LongTextWarning, Translator
from heedful.text.tokenizer import Tokenizer
from heedful.text.training_lines import TrainingLines

TEXTS = ["a red dog runs", "", "the sea is blue and the sun is red", " ", "dog"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    torch.manual_seed(1)
    tokenizer = Tokenizer.train(TEXTS * 3, 283)
    stack = StackConfig(num_layers=2, attention=AttentionConfig(num_heads=3))
    config = EncoderDecoderConfig(tokenizer.vocabulary_size, 12, 23, encoder=stack, decoder=stack)
    settings = ModelConfig("encoder_decoder", "translation", config)
    return Translator(LoadedModel(EncoderDecoder(config).eval(), settings, tokenizer))


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


PARAGRAPH = "the dog is red.  The sea is blue! A sun?"
SENTENCES = ["the dog is red.", "The sea is blue!", "A sun?"]


def test_a_line_of_several_sentences_is_its_sentences_translated_one_by_one(translator: Translator) -> None:
    alone = translator.translate(SENTENCES, beam=3, alignment=True)
    (found,) = translator.translate([PARAGRAPH], beam=3, alignment=True)
    assert found.text == f"{alone[0].text}  {alone[1].text} {alone[2].text}"
    of_tokens = [score for each in alone for score in each.token_scores[: len(each.tokens)]]
    assert found.token_scores[: len(found.tokens)] == of_tokens  # each has its own
    assert found.token_scores[len(found.tokens) :] == [
        score for each in alone for score in each.token_scores[len(each.tokens) :]
    ]
    assert found.score == pytest.approx(sum(sum(each.token_scores) for each in alone))
    assert found.alignment is not None
    words_before = [0, 4, 8]
    shifted = [
        (s + words_before[n], t + sum(len(each.text.split(" ")) for each in alone[:n]))
        for n, each in enumerate(alone)
        for s, t in each.alignment or []
    ]
    if not any("" in each.text.split(" ") for each in alone):
        assert found.alignment == shifted
    assert [each.source for each in found.pieces] == SENTENCES
    assert "".join(each.before + each.text for each in found.pieces) == found.text


def test_a_target_with_another_number_of_sentences_is_scored_as_a_whole_with_a_warning(translator: Translator) -> None:
    targets = ["Le chien. La mer! Un soleil?", "Le chien, la mer. Un soleil?"]
    with pytest.warns(UnevenPairWarning) as told:
        even, uneven = translator.score([PARAGRAPH] * 2, targets)
    assert [str(each.message) for each in told] == [
        "text 2 is translated in 3 pieces, but its target has 2 sentences: taken as a whole"
    ]
    one_by_one = translator.score(SENTENCES, ["Le chien.", "La mer!", "Un soleil?"])
    assert even.log_probability == pytest.approx(sum(each.log_probability for each in one_by_one))
    assert len(even.token_scores) != len(uneven.token_scores)


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
    assert measured(("", "dog")).perplexity == expected.perplexity and told == [(3, "has a blank source")]
    with pytest.raises(UserError, match="all sources are blank"):
        evaluate_translation(settings, 1, ["", " "], ["", "x"], lambda number, text: None)


def test_nbest_lines_of_a_line_in_pieces_are_the_best_sums(translator: Translator) -> None:
    count = 5
    alone = translator.translate(SENTENCES, beam=count, nbest=count)
    (found,) = translator.translate([PARAGRAPH], beam=count, nbest=count)
    sums = [[sum(each.token_scores) for each in one.nbest] for one in alone]
    largest = sorted((sum(choice) for choice in itertools.product(*sums)), reverse=True)
    assert len(found.nbest) == count
    assert found.nbest[0].text == translator.translate([PARAGRAPH], beam=count)[0].text == found.text
    best = sum(each[0] for each in sums)
    expected = [best, *(each for each in largest if each != pytest.approx(best, abs=1e-9))][:count]
    assert [each.score for each in found.nbest] == pytest.approx(expected)
    assert len({each.text for each in found.nbest}) == count


def test_samples_of_a_line_in_pieces_are_joined_by_their_number(translator: Translator) -> None:
    options = DecodingOptions(nbest=3, max_length=7, sampling=SamplingOptions(temperature=1.5, seed=3))
    (found,) = translator.translate([PARAGRAPH], options)
    assert len(found.nbest) == 3 and len({each.text for each in found.nbest}) == 3


def test_the_ways_to_split_a_line(translator: Translator) -> None:
    two = "the dog is red. The sun?"
    (whole,) = translator.translate([two], split="none")
    (parts,) = translator.translate([two], split="sentences")
    assert not whole.pieces and len(parts.pieces) == 2 and whole.text != parts.text
    with pytest.raises(UserError, match="did you mean 'sentences'"):
        translator.translate([two], split="sentence")


def test_a_prefix_of_several_sentences_begins_the_pieces_one_after_another(translator: Translator) -> None:
    free = translator.translate([PARAGRAPH], beam=2)[0].pieces
    (found,) = translator.translate([PARAGRAPH], beam=2, prefix="One red dog. The se")
    assert found.pieces[0].text == "One red dog."
    assert found.pieces[1].text.startswith("The se")
    assert found.pieces[2] == free[2]
    (found,) = translator.translate([PARAGRAPH], beam=2, prefix="One red dog. ")
    assert found.pieces[0].text == "One red dog." and found.pieces[1:] == free[1:]
    (found,) = translator.translate([PARAGRAPH], beam=2, prefix="One red dog.")
    assert found.pieces[0].text.startswith("One red dog.") and found.pieces[1:] == free[1:]


def test_alternatives_are_those_of_the_piece_that_the_prefix_ends_in(translator: Translator) -> None:
    assert translator.alternatives(PARAGRAPH, "One red dog. The") == translator.alternatives(SENTENCES[1], "The")
    assert translator.alternatives(PARAGRAPH, "One red dog. ") == translator.alternatives(SENTENCES[1])
    assert translator.alternatives(PARAGRAPH, "One") == translator.alternatives(SENTENCES[0], "One")


def test_attention_to_a_line_in_pieces_is_block_diagonal(translator: Translator) -> None:
    parts = [translator.attention(text) for text in SENTENCES]
    whole = translator.attention(PARAGRAPH)
    for kind in ("encoder", "decoder", "cross"):
        weights = whole.weights(kind)
        row = column = 0
        for part in parts:
            block = part.weights(kind)
            rows, columns = block.shape[2:]
            assert np.array_equal(weights[:, :, row : row + rows, column : column + columns], block)
            weights[:, :, row : row + rows, column : column + columns] = 0
            row, column = row + rows, column + columns
        assert not weights.any() and weights.shape[2:] == (row, column)
        assert whole.labels(kind)[0] == [label for part in parts for label in part.labels(kind)[0]]
    assert [each.token for each in whole.outputs] == [each.token for part in parts for each in part.outputs]
    assert [each.place for each in whole.outputs] == [("target", n) for n in range(len(whole.outputs))]
    assert np.isfinite(whole.mean_distance("cross")).all() and whole.rollout("encoder").shape == (column, column)


def test_a_given_target_is_looked_at_sentence_by_sentence_where_it_has_as_many(translator: Translator) -> None:
    target = "One red dog. Sea blue! Sun?"
    whole = translator.attention(PARAGRAPH, target)
    assert whole.weights("cross")[:, :, 0, -1].max() == 0
    assert translator.attention("the dog is red. Sun?", "One red dog").weights("cross")[:, :, 0, -1].min() > 0


def test_a_piece_longer_than_the_training_lines_is_warned_of(translator: Translator, monkeypatch) -> None:
    lines = TrainingLines(5, 7, 9, 1, 1, 1)
    monkeypatch.setattr(translator, "config", replace(translator.config, training_lines=lines))
    with pytest.warns(
        LongTextWarning, match="subwords without a sentence end, but the longest training line had 9"
    ) as found:
        translator.translate(["dog.", "the red dog is red and the sea is blue. Dog."], DecodingOptions(max_length=3))
    assert [each.message.index for each in found] == [1]


def test_what_a_model_has_seen_decides_what_is_split(translator: Translator, monkeypatch) -> None:
    lines = TrainingLines(20, 22, 22, 2, 3, 3)
    monkeypatch.setattr(translator, "config", replace(translator.config, training_lines=lines))
    assert len(translator.prepare(["Dog. Sea. Sun."])[0].pieces) == 1
    assert [each.text for each in translator.prepare(["Dog. Sea. Sun. Red."])[0].pieces] == ["Dog. Sea.", "Sun. Red."]


def test_a_prefix_reaches_the_last_sentence(translator: Translator) -> None:
    (found,) = translator.translate([PARAGRAPH], beam=2, prefix="One red dog. Sea! The su")
    assert [each.text for each in found.pieces[:2]] == ["One red dog.", "Sea!"]
    assert found.pieces[2].text.startswith("The su")
    (found,) = translator.translate([PARAGRAPH], beam=2, prefix="One. Two. Three. Four")
    assert found.pieces[2].text.startswith("Three. Four")


def test_line_breaks_of_a_text_stay(translator: Translator) -> None:
    text = "a red dog\n\nthe sea is blue. Dog!\r\nsun\n"
    alone = [each.text for each in translator.translate(["a red dog", "the sea is blue.", "Dog!", "sun"])]
    found = translator.translate(text)
    assert found.text == f"{alone[0]}\n\n{alone[1]} {alone[2]}\n{alone[3]}"


def test_a_translation_in_pieces_scores_as_it_was_found(translator: Translator) -> None:
    source = "the dog is red. The sun is blue!"
    (found,) = translator.translate([source], DecodingOptions(beam=2, max_length=5))
    texts = [each.text.strip() for each in found.pieces]
    target = "One red dog. Sea blue!"
    own = translator.score(["the dog is red.", "The sun is blue!"], ["One red dog.", "Sea blue!"])
    assert translator.score(source, target).score == pytest.approx(sum(each.log_probability for each in own))
    assert len(texts) == 2


@pytest.mark.parametrize("texts", [5, b"dog", ["dog", None], [3]])
def test_what_is_not_text_is_refused_in_words(translator: Translator, texts: object) -> None:
    with pytest.raises(UserError, match="expected a string"):
        translator.translate(texts)  # type: ignore[arg-type]
