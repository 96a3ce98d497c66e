"""The little language: translations follow their rules, and alignments are right."""

from heedful.claims.learning.little_language import (
    ADJECTIVES,
    COMMA,
    END,
    FIRST_ADJECTIVE,
    FIRST_NOUN,
    FIRST_TRANSLATED,
    FIRST_VERB,
    PADDING,
    START,
    STOP,
    TRANSLATED_ARTICLES,
    batch_of,
    draw_sentences,
)


def test_every_word_comes_from_the_word_that_it_is_aligned_with() -> None:
    for sentence in draw_sentences(101, (3,)):
        assert len(sentence.target) == len(sentence.source) == len(sentence.alignment)
        assert sorted(sentence.alignment) == list(range(len(sentence.source)))
        for word, place in zip(sentence.target, sentence.alignment, strict=True):
            source = sentence.source[place]
            if source in (COMMA, STOP):
                assert word == source
            elif source >= FIRST_ADJECTIVE:
                assert word - FIRST_TRANSLATED - TRANSLATED_ARTICLES == source - FIRST_ADJECTIVE


def test_the_verb_is_last_and_adjectives_follow_their_nouns() -> None:
    first_noun = FIRST_TRANSLATED + TRANSLATED_ARTICLES + ADJECTIVES
    first_verb = first_noun + FIRST_VERB - FIRST_NOUN
    for sentence in draw_sentences(101, (5,)):
        for before, mark in zip(sentence.target, sentence.target[1:], strict=False):
            if mark in (COMMA, STOP):
                assert before >= first_verb
            if first_noun - ADJECTIVES <= mark < first_noun:
                assert first_noun <= before < first_verb


def test_batches_are_padded_and_framed() -> None:
    batch = batch_of(draw_sentences(7, (1,)))
    assert bool((batch.input_BT[:, 0] == START).all())
    for row, length in zip(batch.source_BS, batch.source_lengths_B, strict=True):
        assert int(row[length - 1]) == END and bool((row[length:] == PADDING).all())
    assert int(batch.real_BT.sum()) == int(batch.source_lengths_B.sum())
