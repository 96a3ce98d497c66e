"""Lines that the translator splits into pieces, on a model with random weights."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from heedful.decoding.options import DecodingOptions, SamplingOptions
from heedful.errors import UserError
from heedful.tasks.translation.answers import Translation, UnevenPairWarning
from heedful.tasks.translation.pieces import _best_sums
from heedful.tasks.translation.pipeline import LongTextWarning, Translator
from heedful.text.tokenizer import words
from heedful.text.training_lines import TrainingLines

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
        (s + words_before[n], t + sum(len(words(each.text)) for each in alone[:n]))
        for n, each in enumerate(alone)
        for s, t in each.alignment or []
    ]
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


def test_a_forced_piece_and_an_equal_one_that_goes_on_are_not_one(translator: Translator) -> None:
    texts, prefixes = ["A dog. The sea!", "A dog."], ["Le chien. La", "Le chien."]
    together = translator.translate(texts, prefix=prefixes)
    alone = [translator.translate([text], prefix=[prefix])[0] for text, prefix in zip(texts, prefixes, strict=True)]
    assert [each.text for each in together] == [each.text for each in alone]
    assert together[0].pieces[0].text == "Le chien." and len(together[1].text) > len("Le chien.")


def test_a_forced_piece_stays_whole_whatever_the_length_of_the_others(translator: Translator) -> None:
    (found,) = translator.translate(["A dog. The sea!"], DecodingOptions(max_length=31), prefix=["Le chien. La"])
    assert found.pieces[0].text == "Le chien." and found.pieces[1].text.startswith("La")


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
    # By their ranks, other samples would come together where there are more of them.
    (more,) = translator.translate([PARAGRAPH], replace(options, nbest=7))
    assert {each.text for each in found.nbest} < {each.text for each in more.nbest}


@pytest.mark.parametrize("text", [SENTENCES[0], PARAGRAPH])
def test_samples_are_sorted_by_their_scores(translator: Translator, text: str) -> None:
    options = DecodingOptions(nbest=11, max_length=5, sampling=SamplingOptions(temperature=1.5, seed=3))
    found = translator.translate(text, options)
    ranks = [(len(each.tokens) - len(each.token_scores), -each.score) for each in found.nbest]
    assert ranks == sorted(ranks) and (found.text, found.score) == (found.nbest[0].text, found.nbest[0].score)


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


def test_each_piece_takes_as_many_sentences_of_a_prefix_as_it_has(translator: Translator, monkeypatch) -> None:
    lines = TrainingLines(20, 22, 22, 2, 3, 3)
    monkeypatch.setattr(translator, "config", replace(translator.config, training_lines=lines))
    text = "Dog. Sea. Sun. Red."
    free = translator.translate(text, beam=2).pieces

    def found(prefix: str) -> list[str]:
        return [each.text for each in translator.translate(text, beam=2, prefix=prefix).pieces]

    first, second = found("A dog. ")
    assert first.startswith("A dog.") and len(first) > len("A dog.") and second == free[1].text
    first, second = found("A dog. The sea. A s")
    assert first == "A dog. The sea." and second.startswith("A s")
    first, second = found("A dog. The sea. A sun. A")
    assert first == "A dog. The sea." and second.startswith("A sun. A")
    rows = translator.translate("Dog. Sea.\nSun. Red. Dog.", beam=2, prefix="A dog. The sea. A s").pieces
    assert rows[0].text == "A dog. The sea." and rows[1].text.startswith("A s")


def test_no_two_sentences_of_a_prefix_begin_the_parts_of_one_sentence(translator: Translator, monkeypatch) -> None:
    lines = TrainingLines(5, 7, 9, 1, 1, 1)
    monkeypatch.setattr(translator, "config", replace(translator.config, training_lines=lines))
    text, prefix = "Dog. the red dog is red and the sea is blue. Dog.", "A dog. The red sea. A dog. A"
    with pytest.warns(LongTextWarning):
        (prepared,) = translator.prepare([text], prefix)
    assert [each.sentences for each in prepared.pieces][:2] == [1, 0] and len(prepared.pieces) > 3
    begins = [(translator.text_of(start.ids), start.whole) for start in prepared.starts]
    assert begins == [("A dog.", True), ("The red sea. A dog. A", False), *[("", False)] * (len(begins) - 2)]


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


def test_the_best_sums_are_those_of_all_choices() -> None:
    draw = random.Random(7)
    for _ in range(50):
        best_of = [
            [Translation(f"{place} {rank}", token_scores=[-draw.random()]) for rank in range(draw.randint(1, 3))]
            for place in range(draw.randint(2, 5))
        ]
        choices = [list(each) for each in itertools.product(*best_of)]
        first, *others = choices
        others.sort(key=lambda choice: -sum(score for each in choice for score in each.token_scores))
        count = max(map(len, best_of))
        assert _best_sums(best_of) == [first, *others][:count]
