from hypothesis import given
from hypothesis import strategies as st

from heedful.segmentation import split_line


def words(text: str) -> int:
    return len(text.split())


def test_sentences_stay_whole_and_are_packed() -> None:
    line = "One two. Three four! Five six seven? Eight."
    assert split_line(line, 4, words) == ["One two. Three four!", "Five six seven? Eight."]


def test_a_long_sentence_is_cut_at_spaces() -> None:
    assert split_line("a b c d e f g", 3, words) == ["a b c", "d e f", "g"]


def test_a_long_word_is_cut_anywhere() -> None:
    assert split_line("abcdefgh", 3, len) == ["ab", "cd", "ef", "gh"]


@given(st.text(min_size=1), st.integers(1, 7))
def test_nothing_but_white_space_is_lost_and_every_piece_fits(line: str, longest: int) -> None:
    pieces = split_line(line, longest, len)
    assert "".join("".join(pieces).split()) == "".join(line.split())
    assert all(len(piece) <= longest for piece in pieces)
