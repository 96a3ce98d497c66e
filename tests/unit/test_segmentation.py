from hypothesis import given
from hypothesis import strategies as st

from heedful.segmentation import Piece, split_line


def count_words(text: str) -> int:
    return len(text.split())


def texts(pieces: list[Piece]) -> list[str]:
    return [piece.text for piece in pieces]


def test_sentences_stay_whole_and_are_packed() -> None:
    line = "One two. Three four! Five six seven? Eight."
    assert texts(split_line(line, 4, count_words)) == ["One two. Three four!", "Five six seven? Eight."]


def test_a_long_sentence_is_cut_at_spaces() -> None:
    pieces = split_line("a b c d e f g", 3, count_words)
    assert pieces == [Piece("a b c", ""), Piece("d e f", " "), Piece("g", " ")]


def test_a_long_word_is_cut_anywhere_and_nothing_stands_between_its_parts() -> None:
    assert split_line("abcdefgh", 3, len) == [Piece("ab", ""), Piece("cd", ""), Piece("ef", ""), Piece("gh", "")]


def test_scripts_without_spaces_get_none() -> None:
    assert split_line("今日は。明日は。", 4, len) == [Piece("今日は。", ""), Piece("明日は。", "")]
    assert texts(split_line("今日は。明日は。昨日は。", 8, len)) == ["今日は。明日は。", "昨日は。"]


@given(st.text(min_size=1), st.integers(1, 7))
def test_nothing_but_white_space_is_lost_and_every_piece_fits(line: str, longest: int) -> None:
    pieces = split_line(line, longest, len)
    assert "".join("".join(texts(pieces)).split()) == "".join(line.split())
    assert all(len(piece.text) <= longest for piece in pieces)
