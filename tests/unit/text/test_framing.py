from hypothesis import given
from hypothesis import strategies as st

from heedful.text.framing import frame, frame_words
from heedful.text.special_tokens import SpecialTokens

SPECIAL = SpecialTokens(pad=100, start=101, end=102, mask=103)
IDS = st.lists(st.integers(0, 99), max_size=23)


def test_one_text_and_two() -> None:
    assert frame([[1, 2, 3]], 5, SPECIAL) == ([101, 1, 2, 3, 102], 5, False)
    assert frame([[1, 2], [3]], 6, SPECIAL) == ([101, 1, 2, 102, 3, 102], 4, False)


def test_the_middle_is_cut_out() -> None:
    assert frame([list(range(11))], 7, SPECIAL) == ([101, 0, 1, 2, 9, 10, 102], 7, True)


def test_the_longer_of_two_is_cut_first() -> None:
    assert frame([list(range(9)), [50, 51]], 9, SPECIAL) == ([101, 0, 1, 7, 8, 102, 50, 51, 102], 6, True)
    assert frame([[1] * 9, [2] * 9], 10, SPECIAL) == ([101, *[1] * 4, 102, *[2] * 3, 102], 6, True)


@given(st.lists(IDS, min_size=1, max_size=2), st.integers(4, 31))
def test_all_room_is_used_and_no_more(texts: list[list[int]], max_length: int) -> None:
    found = frame(texts, max_length, SPECIAL)
    whole = sum(map(len, texts)) + 1 + len(texts)
    assert len(found.ids) == min(whole, max_length)
    assert found.shortened == (whole > max_length)
    assert found.ids[0] == 101 and found.ids[-1] == 102 and found.ids[found.first_length - 1] == 102
    assert found.ids.count(102) == len(texts)


@given(st.lists(st.lists(st.integers(0, 99), max_size=7), min_size=1, max_size=11), st.integers(4, 13))
def test_every_word_has_a_place_in_some_piece(words: list[list[int]], max_length: int) -> None:
    pieces = frame_words(words, max_length, SPECIAL)
    firsts = [piece.ids[place] for piece in pieces for place in piece.begins]
    assert firsts == [word[0] if word else 102 for word in words]
    assert all(len(piece.ids) <= max_length for piece in pieces)
    assert all(piece.ids[0] == 101 and piece.ids[-1] == 102 for piece in pieces)
