import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.text import corpus_encoder
from heedful.text.corpus_encoder import CorpusEncoder
from heedful.text.tokenizer import Tokenizer

TOKENIZER = Tokenizer.train(["the dog and the   cat", "der Hund\u00a0und die  Katze, 12"] * 9, 331)
TEXTS = st.lists(st.one_of(st.text(max_size=17), st.text(alphabet="ab \u00a0\u0301\n,1", max_size=11)), max_size=13)


def encodes_like_the_tokenizer(encoder: CorpusEncoder, texts: list[str]) -> bool:
    ids, lengths = encoder.encode(texts)
    expected = TOKENIZER.encode_batch(texts)
    same_lengths = lengths.tolist() == [len(text_ids) for text_ids in expected]
    return same_lengths and ids.tolist() == [i for text_ids in expected for i in text_ids]


@given(TEXTS, TEXTS)
@settings(max_examples=120)
@example([], [""])
@example(["", "a", ""], ["a  b", " a", "a "])
@example(["the dog", "the cat"], ["the dog and"])
def test_it_encodes_as_the_tokenizer_does(texts: list[str], more_texts: list[str]) -> None:
    encoder = CorpusEncoder(TOKENIZER)
    assert encodes_like_the_tokenizer(encoder, texts)
    assert encodes_like_the_tokenizer(encoder, more_texts)
    assert encodes_like_the_tokenizer(encoder, texts)


def test_a_full_cache_is_emptied_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_encoder, "MAX_CACHED_WORDS", 7)
    encoder = CorpusEncoder(TOKENIZER)
    rng = np.random.default_rng(5)
    for _ in range(11):
        assert encodes_like_the_tokenizer(encoder, [" ".join(map(str, rng.integers(0, 13, 3))) for _ in range(2)])
        assert len(encoder._rows) <= 7


def test_long_words_empty_the_cache_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_encoder, "MAX_CACHED_TOKENS", 100)
    encoder = CorpusEncoder(TOKENIZER)
    for letter in "xyz":
        assert encodes_like_the_tokenizer(encoder, [letter * 97, f"{letter} w"])
        assert len(encoder._tokens) < 300


def test_known_words_are_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = CorpusEncoder(TOKENIZER)
    first = encoder.encode(["the dog and the cat"])[0].tolist()
    monkeypatch.setattr(TOKENIZER, "encode_batch", lambda texts: [] if not texts else pytest.fail(str(texts)))
    assert encoder.encode(["the cat", "and the dog"])[0].tolist() == [*first[3:], *first[2:3], *first[:2]]
