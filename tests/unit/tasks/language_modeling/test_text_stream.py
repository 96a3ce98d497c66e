import functools

from hypothesis import given
from hypothesis import strategies as st

from heedful.tasks.language_modeling.text_stream import TextStream
from heedful.text.tokenizer import Tokenizer


@functools.cache
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["the red dog runs 123 times", "déjà vu"], 300, whole_texts=True)


@given(st.text(), st.lists(st.text(min_size=1, max_size=3), max_size=3))
def test_the_pieces_are_the_text_up_to_the_first_stop(text: str, stop: list[str]) -> None:
    ids = tokenizer().encode(text)
    whole = tokenizer().decode(ids)
    stream = TextStream(tokenizer(), stop)
    pieces = [stream.add(token) for token in ids]
    pieces.append(stream.finish())
    places = [whole.find(each) for each in stop if each and each in whole]
    assert "".join(pieces) == (whole[: min(places)] if places else whole)
    assert stream.stopped == bool(places)


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
