"""The stated rules by which pairs of lines are cleaned or left out, as stateless functions."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from heedful.text.text_files import MAX_LINE_BYTES

# Translating a line must not wait for numpy.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Lengths: TypeAlias = npt.NDArray[np.int32]

MAX_RATIO = 9
RATIO_SLACK = 10  # subwords; a one-word line may well have a translation of ten

TOO_MANY_OBJECTS = "with more than 1 % of objects in a file that cannot be read, the run stops."


class Rule(StrEnum):
    """A reason to change a pair of lines or to leave it out; a pair is left out by the first that applies."""

    MISSING_COLUMN = "missing column"
    OTHER_COLUMNS = "number of columns"
    NOT_JSON = "not JSON"
    NULL = "null"
    NOT_TEXT = "not text"
    LIST_LENGTHS = "list lengths"
    INVALID_UTF8 = "invalid UTF-8"
    CONTROL_CHARACTERS = "control characters"
    BLANK = "blank"
    OVER_LONG = "over-long"
    LENGTH_RATIO = "length ratio"
    DUPLICATE = "duplicate"


RULES: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.MISSING_COLUMN: "A row of a table file that lacks one of the two columns is left out; other columns "
        "are not read.",
        Rule.OTHER_COLUMNS: "A row with more or fewer columns than the header, or than most of the first rows, is left "
        "out; with more than 1 % of such rows in a file, the run stops.",
        Rule.NOT_JSON: "A line of a file of JSON objects that is not valid JSON is left out.",
        Rule.NULL: f"A JSON object in which one of the two is null is left out; {TOO_MANY_OBJECTS}",
        Rule.NOT_TEXT: "A JSON object in which one of the two is a list or an object, not a text, is left out; "
        f"{TOO_MANY_OBJECTS}",
        Rule.LIST_LENGTHS: f"A JSON object with two lists, one longer than the other, is left out; {TOO_MANY_OBJECTS}",
        Rule.INVALID_UTF8: "A pair is left out when one of its lines is not valid UTF-8 (or not valid in the encoding "
        "that was given); with more than 1 % of such lines in a file, the run stops.",
        Rule.CONTROL_CHARACTERS: "Each run of control characters (Unicode category Cc) and of the line "
        "breaks U+2028 and U+2029 inside a line is replaced by one space, and the pair is kept.",
        Rule.BLANK: "A pair is left out when one of its lines holds nothing but white space.",
        Rule.OVER_LONG: "A pair is left out when one of its lines has more subwords than the maximum length "
        f"(256 unless set) or more than {MAX_LINE_BYTES:,} bytes.",
        Rule.LENGTH_RATIO: f"A training pair is left out when one line has more than {MAX_RATIO} times as "
        f"many subwords as the other, plus {RATIO_SLACK}; pairs of given validation files are not.",
        Rule.DUPLICATE: "Of training pairs with the same cleaned source and target the first is kept and the "
        "others are left out; repeated pairs of given validation files are not.",
    }
)
KEEPING_RULES = frozenset({Rule.CONTROL_CHARACTERS})

_CONTROL_RUN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# The same characters as bytes, except newline, for a quick check of a whole block of lines.
_CONTROL_BYTES = bytes(set(range(0x20)) - {0x0A} | {0x7F})
_CONTROL_SEQUENCE = re.compile(rb"\xc2[\x80-\x9f]")
_FEW_LINES = 16
_LINE_BREAK_SEQUENCES = ("\u2028".encode(), "\u2029".encode())


class Hit(NamedTuple):
    """A pair, by its place in its block, that a rule applies to; the side is source, target or both."""

    offset: int
    rule: Rule
    side: str


@dataclass(frozen=True)
class CleanedPairs:
    """The pairs of a block that the rules on lines keep, the places they had in the block, and the hits."""

    sources: list[str]
    targets: list[str]
    offsets: npt.NDArray[np.int64]
    hits: list[Hit]


def clean_text(text: str) -> str:
    """A text as training would have cleaned it: control characters and line breaks as spaces, ends stripped."""
    return unicodedata.normalize("NFC", _CONTROL_RUN.sub(" ", text)).strip()


def has_control_characters(text: str) -> bool:
    """Whether a text holds what would break a line or its columns."""
    return _CONTROL_RUN.search(text) is not None


def escaped(text: str) -> str:
    r"""A text for a column of a line: control characters and line breaks as \n, \t, \x1b and so on."""
    return _CONTROL_RUN.sub(lambda run: run[0].encode("unicode_escape").decode("ascii"), text)


def clean_line(line: bytes) -> tuple[str, Rule | None]:
    """The clean text of one line and the rule that applied; a line to be left out has no text."""
    if len(line) > MAX_LINE_BYTES:
        return "", Rule.OVER_LONG
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        return "", Rule.INVALID_UTF8
    rule = None
    if _CONTROL_RUN.search(text):
        rule = Rule.CONTROL_CHARACTERS if _CONTROL_RUN.search(text.replace("\t", " ")) else None
        text = _CONTROL_RUN.sub(" ", text)
    text = unicodedata.normalize("NFC", text).strip()
    return text, rule if text else Rule.BLANK


def clean_lines(lines: list[bytes]) -> tuple[list[str], list[tuple[int, Rule]]]:
    """What clean_line gives for each line: all texts, and the places where a rule applied, with the rule."""
    texts = _clean_plain_lines(lines)
    if texts is not None:
        return texts, [(place, Rule.BLANK) for place, text in enumerate(texts) if not text] if "" in texts else []
    if len(lines) <= _FEW_LINES:
        cleaned = [clean_line(line) for line in lines]
        return [text for text, _ in cleaned], [(place, rule) for place, (_, rule) in enumerate(cleaned) if rule]
    # Few lines need more than the fast path: halve the block until they are found.
    middle = len(lines) // 2
    first_texts, first_rules = clean_lines(lines[:middle])
    other_texts, other_rules = clean_lines(lines[middle:])
    return first_texts + other_texts, first_rules + [(middle + place, rule) for place, rule in other_rules]


def _clean_plain_lines(lines: list[bytes]) -> list[str] | None:
    """The texts of lines that hold no control characters, in one go; None if one of them needs more."""
    block = b"\n".join(lines)
    if not lines or _holds_control_characters(block) or max(map(len, lines)) > MAX_LINE_BYTES:
        return None
    try:
        text = unicodedata.normalize("NFC", block.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    return [line.strip() for line in text.split("\n")]


def _holds_control_characters(block: bytes) -> bool:
    return (
        len(block.translate(None, _CONTROL_BYTES)) != len(block)
        or any(sequence in block for sequence in _LINE_BREAK_SEQUENCES)
        or _CONTROL_SEQUENCE.search(block) is not None
    )


def clean_pairs(
    sources: list[bytes],
    targets: list[bytes],
    missing: Collection[int] = (),
    faults: Mapping[int, Rule] = MappingProxyType({}),
) -> CleanedPairs:
    """Clean a block of aligned lines; `missing` are places of rows that lacked a column, `faults` of other bad rows."""
    import numpy as np

    assert len(sources) == len(targets), (len(sources), len(targets))
    source_texts, source_rules = clean_lines(sources)
    target_texts, target_rules = clean_lines(targets)
    if not (source_rules or target_rules or missing or faults):
        return CleanedPairs(source_texts, target_texts, np.arange(len(sources)), [])
    found: dict[int, list[tuple[Rule, str]]] = {place: [(Rule.MISSING_COLUMN, "both")] for place in missing}
    found.update({place: [(rule, "both")] for place, rule in faults.items()})
    for side, rules in (("source", source_rules), ("target", target_rules)):
        for place, rule in rules:
            found.setdefault(place, []).append((rule, side))
    hits = [hit for place in sorted(found) for hit in _hits_of_pair(place, found[place])]
    left_out = {hit.offset for hit in hits if hit.rule not in KEEPING_RULES}
    kept = [place for place in range(len(sources)) if place not in left_out]
    return CleanedPairs(
        [source_texts[place] for place in kept],
        [target_texts[place] for place in kept],
        np.array(kept, dtype=np.int64),
        hits,
    )


def _hits_of_pair(offset: int, found: list[tuple[Rule, str]]) -> list[Hit]:
    """The one rule that leaves the pair out, or else those that change it, each with its side."""
    order = list(Rule)
    leaving = sorted((rule for rule, _ in found if rule not in KEEPING_RULES), key=order.index)
    rules = leaving[:1] or sorted({rule for rule, _ in found}, key=order.index)
    sides = {rule: {side for other, side in found if other is rule} for rule in rules}
    return [Hit(offset, rule, "both" if len(sides[rule]) > 1 else sides[rule].pop()) for rule in rules]


def over_long(source_lengths: Lengths, target_lengths: Lengths, max_length: int) -> npt.NDArray[np.bool_]:
    """Which pairs have more than max_length subwords on one side."""
    import numpy as np

    return np.maximum(source_lengths, target_lengths) > max_length


def extreme_ratio(source_lengths: Lengths, target_lengths: Lengths) -> npt.NDArray[np.bool_]:
    """Which pairs have more than MAX_RATIO times as many subwords on one side, plus RATIO_SLACK."""
    import numpy as np

    shorter, longer = np.minimum(source_lengths, target_lengths), np.maximum(source_lengths, target_lengths)
    return longer > MAX_RATIO * shorter + RATIO_SLACK
