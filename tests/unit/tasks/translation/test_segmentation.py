import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.tasks.translation.segmentation import Splitter, TextPiece, space_between
from heedful.text.sentences import sentence_spans
from heedful.text.training_lines import TrainingLines

ONE_EACH = TrainingLines(5, 8, 11, 1, 1, 2)
TWO_EACH = TrainingLines(5, 8, 11, 2, 3, 5)


def encode_words(texts: list[str]) -> list[list[int]]:
    return [[len(word) for word in text.split()] for text in texts]


def encode_characters(texts: list[str]) -> list[list[int]]:
    return [[ord(character) for character in text] for text in texts]


def pieces(line: str, split: str = "auto", longest: int = 13, seen: TrainingLines | None = ONE_EACH) -> list[TextPiece]:
    found = Splitter(encode_words, longest, "en", seen).split(line, encode_words([line])[0], split)
    assert found.sources == encode_words(texts(found.pieces))
    return found.pieces


def texts(found: list[TextPiece]) -> list[str]:
    return [piece.text for piece in found]


def sentences(text: str, language: str | None) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language)]


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["Dr. Smith paid $3.50 to Mr. Jones.", "He left at 5 p.m.", "Then he slept."]),
        ("en", ['He said: "I go. You stay."', "Then he left.", "What?!", "3 dogs run."]),
        ("de", ["Das ist z. B. ein Test.", "Am 3. Mai kam er.", "Siehe Nr. 7 hier.", "6 Hunde bellen."]),
        ("fr", ["M. Dupont est là.", "Il voit M. Petit !", "Pourquoi ?", "3 chiens."]),
        ("hi", ["यह एक वाक्य है।", "यह दूसरा है।"]),
        ("ar", ["هذا نص.", "هل هذا سؤال؟", "نعم."]),
        ("am", ["ሰላም ነው።", "እንዴት ነህ፧"]),
        ("hy", ["Սա է։", "Այո։"]),
        (None, ["Hello there.", "My friend."]),
        ("tlh", ["Hello there.", "My friend."]),
        ("en-GB", ["Hello there.", "My friend."]),
    ],
)
def test_sentences_of_many_scripts_are_found(language: str | None, expected: list[str]) -> None:
    assert sentences(" ".join(expected), language) == expected


def test_scripts_without_spaces_are_split() -> None:
    assert sentences("今天很好。我们走吧！你来吗？3只狗。", "zh") == ["今天很好。", "我们走吧！", "你来吗？", "3只狗。"]


@given(st.text() | st.text("\ud800\udfff. aA"), st.sampled_from(["en", "de", "zh", "xx"]))
def test_no_character_is_lost_between_sentences(text: str, language: str) -> None:
    spans = sentence_spans(text, language)
    between = zip([0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)], strict=True)
    assert all(not text[last:first].strip() for last, first in between)
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)


def test_a_line_like_those_of_the_training_stays_whole() -> None:
    assert texts(pieces("One two three.")) == ["One two three."]
    assert texts(pieces("One. Two. Three.", seen=TWO_EACH)) == ["One. Two. Three."]


def test_a_line_of_more_sentences_is_split_into_its_sentences_with_its_spaces() -> None:
    assert pieces("One two.  Three four!   Five?") == [
        TextPiece("One two.", ""),
        TextPiece("Three four!", "  "),
        TextPiece("Five?", "   "),
    ]


def test_pieces_have_as_many_sentences_as_the_median_line_and_no_more_subwords_than_most() -> None:
    assert texts(pieces("Ah. Be. Ce. De. Eh.", seen=TWO_EACH)) == ["Ah. Be.", "Ce. De.", "Eh."]
    line = "Ah one two three four. Be one two three four. Ce. De."
    assert texts(pieces(line, seen=TWO_EACH)) == ["Ah one two three four.", "Be one two three four. Ce.", "De."]


def test_a_piece_knows_how_many_sentences_it_is() -> None:
    line = "Ah. Be. One two three, four five six one two three, four five six. Ce. De."
    found = [(piece.text, piece.sentences) for piece in pieces(line, seen=TWO_EACH)]
    parts = [("One two three,", 0), ("four five six one two three,", 0), ("four five six.", 0)]
    assert found == [("Ah. Be.", 2), *parts, ("Ce. De.", 2)]
    assert [piece.sentences for piece in pieces("Ah. Be. Ce.", seen=TWO_EACH)] == [3]
    assert [piece.sentences for piece in pieces("Ah. Be. Ce. De.", "none")] == [4]


def test_a_line_with_more_subwords_than_most_is_split_though_it_has_few_sentences() -> None:
    line = "A one two three four. B one two three four."
    assert len(pieces(line, seen=TWO_EACH)) == 2


def test_the_ways_to_split() -> None:
    line = "Ah. Be. Ce. De."
    assert len(pieces(line, "sentences", seen=TWO_EACH)) == 4
    assert texts(pieces(line, "none")) == [line]
    assert len(pieces("One two three.", "sentences")) == 1
    assert texts(pieces(line, "none", longest=3)) == ["Ah. Be. Ce.", "De."]


def test_a_model_without_a_record_is_taken_to_have_seen_a_sentence_per_line() -> None:
    assert texts(pieces("A one two. B.", seen=None)) == ["A one two.", "B."]
    assert len(pieces("A one two three four five six seven eight nine.", seen=None)) == 1


def test_a_sentence_that_the_model_cannot_take_is_cut_at_spaces() -> None:
    assert pieces("a b c d e f g", longest=3) == [
        TextPiece("a b c", "", 0),
        TextPiece("d e f", " ", 0),
        TextPiece("g", " ", 0),
    ]


def test_a_long_word_is_cut_anywhere_and_nothing_stands_between_its_parts() -> None:
    found = Splitter(encode_characters, 3, None, None).split("abcdefgh", list(range(8)), "auto").pieces
    assert found == [TextPiece(text, "", 0) for text in ("ab", "cd", "ef", "gh")]


@pytest.mark.parametrize("split", ["auto", "sentences", "none"])
@given(line=st.text(min_size=1).map(str.strip).filter(bool), longest=st.integers(1, 7))
def test_the_pieces_and_their_spaces_are_the_line_and_every_piece_fits(split: str, line: str, longest: int) -> None:
    asked: list[str] = []

    def encode(texts: list[str]) -> list[list[int]]:
        asked.extend(texts)
        return encode_characters(texts)

    (ids,) = encode_characters([line])
    found = Splitter(encode, longest, "en", ONE_EACH).split(line, ids, split).pieces
    assert line not in asked  # it is tokenised already
    assert "".join(piece.before + piece.text for piece in found) == line
    assert all(0 < len(piece.text) <= longest for piece in found)


@pytest.mark.parametrize("line", ["狗看猫。”猫爱书！", "“狗看猫。猫爱书！", "狗看猫。……猫爱书！", "狗看猫猫爱书🐕"])
def test_signs_are_never_a_piece_of_their_own(line: str) -> None:
    seen = TrainingLines(2, 3, 3, 1, 1, 1)
    found = Splitter(encode_characters, 13, "zh", seen).split(line, encode_characters([line])[0], "auto")
    assert len(found.pieces) > 1 and all(any(map(str.isalnum, text)) for text in texts(found.pieces))
    assert "".join(each.before + each.text for each in found.pieces) == line


def test_translations_of_scripts_without_spaces_get_one_where_they_need_it() -> None:
    assert space_between(TextPiece("再见。", ""), "你好。", "Hello.") == " "
    assert space_between(TextPiece("再见。", ""), "他说：“你好。”", 'He says: "Hello."') == " "
    assert space_between(TextPiece("再见。", ""), "你好。", "今日は。") == ""
    assert space_between(TextPiece("校で歌う。", ""), "「猫が朝学", "The cat") == " "
    assert space_between(TextPiece("校で歌う。", ""), "「猫が朝学", "猫は") == ""
    assert space_between(TextPiece("वह", ""), "बिल्ली आज।", "The cat.") == " "
    assert space_between(TextPiece("word", ""), "half a", "ein halbes") == ""
    assert space_between(TextPiece("Two.", "  "), "One.", "Eins.") == "  "


FORMS = ["({})", "[{}]", "<p>{}</p>", "**{}**", "{} 😀", "1. {}", "- {}", '"{}"', "{} Tom likes me."]


@pytest.mark.parametrize("form", FORMS)
def test_sentences_in_brackets_tags_and_lists_are_found(form: str) -> None:
    own = [form.format(each) for each in ("Tom sees a dog.", "Mary has one cat!", "The bird eats fish.")]
    expected = [part for each in own for part in (each.split(" Tom likes") if "likes" in form else [each])]
    expected = [f"Tom likes{part}" if part == " me." else part for part in expected]
    assert sentences(" ".join(own), "en") == expected


@pytest.mark.parametrize("end", ["…", "...", "!!!", "?!"])
def test_signs_in_a_row_end_a_sentence(end: str) -> None:
    own = [f"{each}{end}" for each in ("Tom sees a dog", "Mary has one cat", "The bird eats fish")]
    assert sentences(" ".join(own), "en") == own


def test_a_sentence_longer_than_those_of_the_training_is_cut_at_looser_signs() -> None:
    line = "Ah one two three four: be one two three four; ce one two, de"
    assert texts(pieces(line)) == ["Ah one two three four:", "be one two three four; ce one two,", "de"]
    # Where the longest line of the training had as many words, it is rare, and like one of the training nevertheless.
    assert texts(pieces(line, longest=17, seen=TrainingLines(5, 8, 14, 1, 1, 2))) == [line]


def test_a_piece_longer_than_every_line_of_the_training_is_cut_between_words_into_pieces_like_those() -> None:
    line = " ".join("abcdefghijklmnopqrst")
    found = Splitter(encode_words, 256, "en", ONE_EACH).split(line, encode_words([line])[0], "auto")
    assert [len(source) for source in found.sources] == [8, 8, 4]
    assert found.is_forced and found.longest == 20
    eleven = line[: 2 * 11 - 1]  # as long as the longest line of the training
    assert texts(pieces(eleven, longest=256)) == [eleven]
    assert texts(pieces(line, "none", longest=256)) == [line]
    some = Splitter(encode_words, 256, "en", ONE_EACH).split(f"a b, {line}", encode_words([f"a b, {line}"])[0], "auto")
    assert [len(source) for source in some.sources] == [2, 8, 8, 4] and some.longest == 22


def test_scripts_without_spaces_are_cut_into_such_pieces_too() -> None:
    line = "今天很好我们走吧你来吗" * 3
    found = Splitter(encode_characters, 256, "zh", ONE_EACH).split(line, encode_characters([line])[0], "auto")
    assert "".join(texts(found.pieces)) == line and max(map(len, found.sources)) <= 8
    word = "https://example.org/a-long-address"  # which is no better in parts
    assert texts(pieces(word, longest=256)) == [word]


@pytest.mark.parametrize("end", ["", "."])
def test_the_subwords_of_a_huge_line_are_counted_to_its_end(end: str) -> None:
    line = "word " * 3000 + "word" + end
    found = Splitter(encode_words, 256, "en", ONE_EACH).split(line, encode_words([line])[0], "auto")
    assert found.longest == 3001 and max(map(len, found.sources)) == 8
    (ids,) = encode_words([line])
    assert Splitter(encode_words, 256, "en", None).split(line, ids, "auto").longest == 3001


def test_sentences_of_a_huge_line_stay_apart() -> None:
    own = ["word " * 700 + "end."] * 5
    assert sentences(" ".join(own).replace("end. w", "end. W"), "en") == [own[0], *[f"W{each[1:]}" for each in own[1:]]]


@pytest.mark.parametrize("pattern", ["« ", "a ", "( ", "A dog. "])
def test_a_huge_line_takes_a_time_in_proportion(pattern: str) -> None:
    def taken(count: int) -> float:
        started = time.process_time()  # which other work on the machine does not add to
        sentence_spans(pattern * count, "en")
        return time.process_time() - started

    short, long = (min(taken(count) for _ in range(3)) for count in (2_000, 40_000))
    assert long < 20 * max(short, 0.002) * 5
