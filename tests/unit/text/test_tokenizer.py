import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.text.tokenizer import (
    END,
    PAD,
    SMALLEST_VOCABULARY,
    SPECIAL_TOKENS,
    START,
    UNKNOWN_TOKEN,
    Tokenizer,
    choose_vocabulary_size,
)

ANY_TEXT = st.text()  # every Unicode character but lone surrogates
TRAINED_ON = ["the dog and the cat", "der Hund und die Katze", "⟨pad⟩ <s> 1234", "   x  y"] * 5
TOKENIZER = Tokenizer.train(TRAINED_ON, 311)


@given(ANY_TEXT)
@settings(max_examples=400)
@example("")
@example(" ")
@example("  two  spaces  ")
@example(" leading")
@example("trailing ")
@example("\u0301 a mark first")
@example("line\nbreaks\r\n\x00\t")
@example("<s> ⟨pad⟩ ⟨start⟩⟨end⟩ </s>")
@example("👩‍👩‍👧 हिन्दी 日本語 \u200b\ufeff")
def test_decoding_gives_the_text_back(text: str) -> None:
    ids = TOKENIZER.encode(text)
    back = TOKENIZER.decode(ids)
    assert TOKENIZER.decode(TOKENIZER.encode(back)) == back
    # Characters newer than Python's own Unicode tables may have normal forms that these do not know.
    if not any(unicodedata.category(character) == "Cn" for character in text):
        assert back == unicodedata.normalize("NFC", text)
    assert not set(ids) & {PAD, START, END}
    assert all(0 <= i < TOKENIZER.vocabulary_size for i in ids)


@given(st.lists(ANY_TEXT, max_size=7))
@settings(max_examples=50)
def test_a_batch_is_encoded_as_its_texts_are(texts: list[str]) -> None:
    assert TOKENIZER.encode_batch(texts) == [TOKENIZER.encode(text) for text in texts]


def test_special_tokens_are_the_first_ids_and_pass_out_of_texts() -> None:
    assert (PAD, START, END) == (0, 1, 2)
    ids = TOKENIZER.encode("the dog")
    assert TOKENIZER.decode([START, *ids, END, PAD, PAD]) == "the dog"


def test_a_word_is_the_same_subword_at_the_start_of_a_line_as_inside() -> None:
    dog = TOKENIZER.encode("dog")
    assert len(dog) == 1
    assert TOKENIZER.encode("the dog")[-1:] == dog
    assert TOKENIZER.starts_with_space(dog[0])
    assert not TOKENIZER.starts_with_space(TOKENIZER.encode("dogx")[-1])


def test_digits_are_single_subwords() -> None:
    tokenizer = Tokenizer.train(["in 1984 and 1985"] * 50, 400)
    assert len(tokenizer.encode("1984")) == 4
    assert tokenizer.encode("198419")[1:] == [
        tokenizer.encode("01")[-1] if d == "1" else tokenizer.encode("0" + d)[-1] for d in "98419"
    ]


def test_marks_stay_with_their_letters() -> None:
    assert len(Tokenizer.train(["हिन्दी"] * 50, 400).encode("हिन्दी")) == 1


def test_lone_surrogates_become_replacement_characters() -> None:
    assert TOKENIZER.decode(TOKENIZER.encode("a\ud800b")) == "a\ufffdb"
    assert TOKENIZER.encode_batch(["dog", "\udfff"])[0] == TOKENIZER.encode("dog")


def test_bytes_that_are_no_text_decode_to_replacement_characters() -> None:
    ids = TOKENIZER.encode("é")
    assert TOKENIZER.decode(ids[:-1]) == "\ufffd"


def test_saved_and_loaded_it_encodes_the_same(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.to_json() == TOKENIZER.to_json()
    assert loaded.encode("The Hund, 12 and more") == TOKENIZER.encode("The Hund, 12 and more")
    assert loaded.vocabulary_size == TOKENIZER.vocabulary_size


def test_the_vocabulary_is_as_large_as_asked_for_when_the_texts_allow(tokenizer: Tokenizer) -> None:
    assert tokenizer.vocabulary_size == 347
    assert SMALLEST_VOCABULARY < TOKENIZER.vocabulary_size < 311


def test_training_depends_on_the_texts_and_not_on_their_order() -> None:
    assert Tokenizer.train(TRAINED_ON[::-1], 311).to_json() == TOKENIZER.to_json()
    assert Tokenizer.train(["another text"], 311).to_json() != TOKENIZER.to_json()


def test_the_file_registers_no_added_tokens() -> None:
    content = json.loads(TOKENIZER.to_json())
    assert content["added_tokens"] == []
    assert [content["model"]["vocab"][token] for token in SPECIAL_TOKENS] == [PAD, START, END]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": 3}', "\xff"])
def test_a_broken_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match=r"tokenizer\.json cannot be read"):
        Tokenizer.load(tmp_path / "tokenizer.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.json cannot be read"):
        Tokenizer.load(tmp_path / "gone.json")


def test_another_tokenizer_is_refused(tmp_path: Path) -> None:
    content = TOKENIZER.to_json().replace("⟨start⟩", "[START]")
    (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match="not made by heedful"):
        Tokenizer.load(tmp_path / "tokenizer.json")


def test_a_vocabulary_must_hold_all_bytes() -> None:
    assert Tokenizer.train(["abc"], SMALLEST_VOCABULARY).decode([]) == ""
    with pytest.raises(UserError, match="too small"):
        Tokenizer.train(["abc"], SMALLEST_VOCABULARY - 1)


@pytest.mark.parametrize(("num_characters", "size"), [(0, 400), (100_000, 704), (3_900_000, 4416), (10**9, 32_000)])
def test_choose_vocabulary_size(num_characters: int, size: int) -> None:
    assert choose_vocabulary_size(num_characters) == size
    assert choose_vocabulary_size(num_characters) % 8 == 0


def test_words_are_counted_by_spaces() -> None:
    tokenizer = Tokenizer.train(["red dog runs"] * 3, 280)
    text = "red  dogs run!"
    ids = tokenizer.encode(text)
    words = tokenizer.word_of_token(ids)
    texts = [
        "".join(tokenizer.token_text(i) for i, w in zip(ids, words, strict=True) if w == word) for word in range(3)
    ]
    assert [each.strip() for each in texts] == ["red", "dogs", "run!"]
    assert tokenizer.word_of_token([]) == []


@given(st.text())
def test_characters_are_looked_up_as_the_library_would(text: str) -> None:
    tokenizer = Tokenizer.of_characters(["abc\n é"])
    assert tokenizer.encode(text) == tokenizer._engine.encode(text, add_special_tokens=False).ids
    known = "".join(each if each in "abc\n é" else UNKNOWN_TOKEN for each in text)
    assert tokenizer.decode(tokenizer.encode(text)) == known


@pytest.mark.parametrize("rest", [", dog", "a dog", "'s", "1", "", "  dog", "\u20ac"])
def test_text_after_a_special_token_does_not_begin_as_if_after_a_space(rest: str) -> None:
    tokenizer = Tokenizer.train(["dog., dog.,"] * 3, 307)
    assert [tokenizer.token_text(token) for token in tokenizer.encode("dog.,")] == [" dog", ".,"]
    assert b"".join(map(tokenizer.token_bytes, tokenizer.encode_after(rest))) == rest.encode()
