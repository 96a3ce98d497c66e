import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.text.cleaning import (
    RULES,
    Hit,
    Rule,
    clean_line,
    clean_lines,
    clean_pairs,
    extreme_ratio,
    over_long,
)
from heedful.text.text_files import MAX_LINE_BYTES

LINES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=13).map(str.encode),
    st.binary(max_size=13).map(lambda line: line.replace(b"\n", b"")),
    st.sampled_from([b"", b" ", b"plain", b"a\tb", b"\x00", "caf\u0065\u0301".encode(), b"x" * (MAX_LINE_BYTES + 1)]),
)


def test_every_rule_is_stated_in_one_sentence() -> None:
    assert list(RULES) == list(Rule)
    assert all(sentence.endswith(".") and sentence.count(". ") == 0 for sentence in RULES.values())


@pytest.mark.parametrize(
    ("line", "text", "rule"),
    [
        (b"A dog runs.", "A dog runs.", None),
        (b"  spaces around\xc2\xa0 ", "spaces around", None),
        ("e\u0301".encode(), "\u00e9", None),
        (b"a\tb\t\tc", "a b c", None),
        (b"a\x00\x07b", "a b", Rule.CONTROL_CHARACTERS),
        (b"a\t\x1bb", "a b", Rule.CONTROL_CHARACTERS),
        ("a\u2028b\u2029\u0085c\x0b\x0cd\x7fe\x9ff".encode(), "a b c d e f", Rule.CONTROL_CHARACTERS),
        (b"a\rb", "a b", Rule.CONTROL_CHARACTERS),
        (b"\x00 \t", "", Rule.BLANK),
        (b"", "", Rule.BLANK),
        ("\u3000\u00a0".encode(), "", Rule.BLANK),
        (b"caf\xe9", "", Rule.INVALID_UTF8),
        (b"\xed\xa0\x80", "", Rule.INVALID_UTF8),
        (b"x" * MAX_LINE_BYTES, "x" * MAX_LINE_BYTES, None),
        (b"x" * (MAX_LINE_BYTES + 1), "", Rule.OVER_LONG),
    ],
)
def test_clean_line(line: bytes, text: str, rule: Rule | None) -> None:
    assert clean_line(line) == (text, rule)


def test_exactly_the_control_characters_and_line_breaks_are_replaced() -> None:
    for number in range(sys.maxunicode + 1):
        character = chr(number)
        if unicodedata.category(character) == "Cs" or character == "\n":
            continue
        replaced = unicodedata.category(character) == "Cc" or character in "\u2028\u2029"
        if replaced or number < 0x3100:
            text, rule = clean_line(f"a{character}b".encode())
            assert (text == "a b") == (replaced or character == " "), hex(number)
            assert (rule is Rule.CONTROL_CHARACTERS) == (replaced and character != "\t"), hex(number)


@given(st.lists(LINES, max_size=53))
@settings(max_examples=150)
@example([b"plain"] * 97 + [b"\xff"] + [b"plain"] * 101 + [b"a\x00b", b"", b"plain"])
def test_a_block_is_cleaned_as_its_lines_are(lines: list[bytes]) -> None:
    texts, rules = clean_lines(lines)
    expected = [clean_line(line) for line in lines]
    assert texts == [text for text, _ in expected]
    assert rules == [(place, rule) for place, (_, rule) in enumerate(expected) if rule]


@given(LINES)
@settings(max_examples=150)
def test_cleaning_twice_changes_nothing_more(line: bytes) -> None:
    text, rule = clean_line(line)
    if text:
        assert clean_line(text.encode()) == (text, None)
        assert not any(unicodedata.category(character) == "Cc" for character in text)
    else:
        assert rule


def test_pairs_are_left_out_by_their_first_rule_and_listed_with_the_side() -> None:
    sources = [b"zero", b"", b"two", b"\xff", b"fo\x00ur", b"", b"", b"se\x01ven", b"eight"]
    targets = [b"null", b"eins", b" ", b"", b"vi\x00er", b"", b"", b"", b"ac\x02ht"]
    cleaned = clean_pairs(sources, targets, missing=(6,))
    assert cleaned.hits == [
        Hit(1, Rule.BLANK, "source"),
        Hit(2, Rule.BLANK, "target"),
        Hit(3, Rule.INVALID_UTF8, "source"),
        Hit(4, Rule.CONTROL_CHARACTERS, "both"),
        Hit(5, Rule.BLANK, "both"),
        Hit(6, Rule.MISSING_COLUMN, "both"),
        Hit(7, Rule.BLANK, "target"),
        Hit(8, Rule.CONTROL_CHARACTERS, "target"),
    ]
    assert cleaned.offsets.tolist() == [0, 4, 8]
    assert cleaned.sources == ["zero", "fo ur", "eight"]
    assert cleaned.targets == ["null", "vi er", "ac ht"]


def test_pairs_that_need_nothing_are_all_kept() -> None:
    cleaned = clean_pairs([b"a", b"b", b"c"], [b"d ", b"e", b"f"])
    assert (cleaned.sources, cleaned.targets) == (["a", "b", "c"], ["d", "e", "f"])
    assert cleaned.offsets.tolist() == [0, 1, 2]
    assert cleaned.hits == []


def test_length_rules_at_their_limits() -> None:
    sources = np.array([1, 1, 19, 20, 11, 2, 1000], np.int32)
    targets = np.array([19, 20, 1, 1, 11, 28, 110], np.int32)
    assert extreme_ratio(sources, targets).tolist() == [False, True, False, True, False, False, False]
    assert over_long(sources, targets, 20).tolist() == [False, False, False, False, False, True, True]
