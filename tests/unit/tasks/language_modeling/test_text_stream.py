import functools

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, pre_tokenizers, trainers

from heedful.tasks.language_modeling.text_stream import TextStream
from heedful.text.special_tokens import SpecialTokens
from heedful.text.tokenizer import SPECIAL_TOKENS, Tokenizer

TEXTS = ["the red dog runs 123 times", "déjà vu"]


@functools.cache
def tokenizer(kind: str = "bytes") -> Tokenizer:
    """One of heedful's own, which spells bytes, or one that spells spaces or the ends of words, as others do."""
    if kind == "bytes":
        return Tokenizer.train(TEXTS, 300, whole_texts=True)
    special = [*SPECIAL_TOKENS, "<unk>"]
    if kind == "lines":
        return Tokenizer.train(TEXTS, 300)
    if kind == "metaspace":
        engine = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
        engine.pre_tokenizer, engine.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        engine.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=60, special_tokens=special))
    else:
        engine = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
        engine.pre_tokenizer, engine.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        engine.train_from_iterator(TEXTS, trainers.WordPieceTrainer(vocab_size=60, special_tokens=special))
    return Tokenizer.from_json(engine.to_str(), SpecialTokens(unknown=3))


KINDS = ["bytes", "lines", "metaspace", "word pieces"]


@given(st.sampled_from(KINDS), st.text() | st.text("the rd.og's"), st.text() | st.text("the rd"), st.data())
def test_the_pieces_are_the_text_up_to_the_first_stop(kind: str, text: str, prompt: str, data: st.DataObject) -> None:
    before, ids = tokenizer(kind).encode(prompt), tokenizer(kind).encode(text)
    whole = tokenizer(kind).decode([*before, *ids])[len(tokenizer(kind).decode(before)) :]
    stop = data.draw(st.lists(st.text(min_size=1, max_size=3) | st.sampled_from([" ", " d", "e "]), max_size=3))
    stream = TextStream(tokenizer(kind), stop, before)
    pieces = [stream.add(token) for token in ids]
    pieces.append(stream.finish())
    places = [whole.find(each) for each in stop if each and each in whole]
    assert "".join(pieces) == (whole[: min(places)] if places else whole)
    assert stream.stopped == bool(places)


@pytest.mark.parametrize("kind", KINDS)
def test_spaces_come_with_the_words_after_them(kind: str) -> None:
    stream, ids = TextStream(tokenizer(kind), ["dog r"]), tokenizer(kind).encode("the red dog runs")
    assert "".join(stream.add(token) for token in ids) + stream.finish() == "the red "
    assert stream.stopped


def test_a_character_of_several_tokens_comes_in_one_piece() -> None:
    stream = TextStream(tokenizer(), ())
    pieces = [stream.add(token) for token in tokenizer().encode("a €")]
    assert "".join(pieces) == "a €" and "\ufffd" not in "".join(pieces)
    assert "" in pieces


def test_text_that_could_become_a_stop_is_held_back() -> None:
    stream = TextStream(tokenizer(), ["dogs"])
    pieces = [stream.add(token) for token in tokenizer().encode("red do")]
    assert "".join(pieces) == "red "
    assert stream.finish() == "do"
