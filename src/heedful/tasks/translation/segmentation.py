"""Splitting a line into pieces like the lines that a model was trained on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

from heedful.config import nearest
from heedful.errors import UserError
from heedful.text.sentences import Span, loose_spans, sentence_spans
from heedful.text.training_lines import TrainingLines

# `auto` splits lines unlike those of the training, `sentences` all lines, `none` what the model cannot take.
Split = Literal["auto", "sentences", "none"]

_WORD = re.compile(r"\S+")
# Sentence ends that need no space after them, besides those of scripts without spaces.
_INDIC_ENDS = "।॥"
# Quotation marks and brackets that close what ends a sentence.
_CLOSING = re.compile(r"""["'’”»›)\]）］」』】》〉]+$""")

Encode = Callable[[list[str]], list[list[int]]]


@dataclass(frozen=True)
class TextPiece:
    """A part of a line, the white space before it, if any, and how many sentences it is: 0 if one was cut."""

    text: str
    before: str
    sentences: int = 1


@dataclass(frozen=True)
class SplitLine:
    """The pieces of a line and the token ids of each.

    `longest` is the most subwords of a piece, or, if `is_forced`, of a sentence that had to be cut between words.
    """

    pieces: list[TextPiece]
    sources: list[list[int]]
    longest: int
    is_forced: bool = False


def join_lines(rows: list[str], split: list[SplitLine]) -> SplitLine:
    """The pieces of a text of several lines, some of which may be blank: its line breaks stay between the pieces."""
    pieces: list[TextPiece] = []
    found, breaks = iter(split), 0
    for row in rows:
        if row:
            first, *others = next(found).pieces
            pieces += [replace(first, before="\n" * breaks if pieces else ""), *others]
            breaks = 0
        breaks += 1
    sources = [ids for each in split for ids in each.sources]
    forced = [each for each in split if each.is_forced]
    # If a sentence was cut between words, its length is the one to report.
    return SplitLine(pieces, sources, max((each.longest for each in forced or split), default=0), bool(forced))


def check_split(split: str) -> Split:
    """The way to split lines with this name, or a UserError."""
    for known in get_args(Split):
        if split == known:
            return known
    raise UserError(f"split is {split!r}: {nearest(split, list(get_args(Split)))}")


class _Parts(NamedTuple):
    """The parts of a sentence, and the most subwords of one, or of the sentence if it had to be cut between words."""

    spans: list[Span]
    longest: int
    is_forced: bool = False


class _LineTokens:
    """The token ids of spans of one line, each of which is tokenised once."""

    def __init__(self, line: str, ids: list[int], encode: Encode) -> None:
        self.line = line
        self._encode = encode
        self._found: dict[Span, list[int]] = {(0, len(line)): ids}

    def ids(self, spans: list[Span]) -> list[list[int]]:
        """The token ids of each span."""
        new = [span for span in dict.fromkeys(spans) if span not in self._found]
        if new:
            encoded = self._encode([self.line[start:end] for start, end in new])
            self._found.update(zip(new, encoded, strict=True))
        return [self._found[span] for span in spans]

    def sizes(self, spans: list[Span]) -> list[int]:
        """The number of token ids of each span."""
        return list(map(len, self.ids(spans)))


@dataclass(frozen=True)
class Splitter:
    """Splits lines for one model: `encode` gives the token ids of texts, `longest` is how many the model takes.

    A model without a record of its training lines is assumed to have seen one sentence per line.
    """

    encode: Encode
    longest: int
    language: str | None
    seen: TrainingLines | None

    def split(self, line: str, ids: list[int], split: Split) -> SplitLine:
        """The line, which has these token ids, or its pieces: sentences, and parts of sentences that are too long.

        A sentence is cut only if it is longer than every training line, or than the model takes.
        """
        sentences = sentence_spans(line, self.language)
        whole = SplitLine([TextPiece(line, "", len(sentences))], [ids], len(ids))
        if split == "none" and len(ids) <= self.longest:
            return whole
        usual, most_seen = self.longest, self.longest
        if self.seen:
            usual, most_seen = min(usual, self.seen.subwords_99), min(most_seen, self.seen.subwords_most)
        if split == "auto" and len(ids) <= usual and len(sentences) <= (self.seen.sentences_99 if self.seen else 1):
            return whole
        most = 1 if split == "sentences" or not self.seen else self.seen.sentences_median
        if split == "none":
            usual, most = self.longest, len(sentences)
        tokens = _LineTokens(line, ids, self.encode)
        joined = _packed(sentences, tokens.sizes(sentences), most, usual)
        bound = self.longest if split == "none" else most_seen
        parts = [self._parts(tokens, span, usual, bound) for span in joined]
        spans = self._with_signs(tokens, [span for part in parts for span in part.spans])
        ends = [spans[0][0], *(end for _, end in spans)]
        counts = _sentences_in(spans, sentences)
        pieces = [
            TextPiece(line[start:end], line[last:start], count)
            for last, (start, end), count in zip(ends, spans, counts, strict=False)
        ]
        forced = [part.longest for part in parts if part.is_forced]
        longest = max(forced or [part.longest for part in parts])
        return SplitLine(pieces, tokens.ids(spans), longest, bool(forced))

    def _parts(self, tokens: _LineTokens, span: Span, usual: int, bound: int) -> _Parts:
        """The parts of a sentence that is too long: cut at weaker punctuation, or else at spaces."""
        (size,) = tokens.sizes([span])
        if size <= bound:
            return _Parts([span], size)
        loose = [span]
        if bound < self.longest or usual < self.longest:
            signs = loose_spans(tokens.line, span)
            loose = _packed(signs, tokens.sizes(signs), len(signs), usual)
        sizes = tokens.sizes(loose)
        if max(sizes) <= bound:
            return _Parts(loose, max(sizes))
        found = [
            part
            for each, its_size in zip(loose, sizes, strict=True)
            for part in ([each] if its_size <= bound else self._cut(tokens, each, usual))
        ]
        return _Parts(found, size, is_forced=True) if len(found) > len(loose) else _Parts(found, max(sizes))

    def _cut(self, tokens: _LineTokens, span: Span, room: int) -> list[Span]:
        """The parts of a span that is too long, cut at spaces; a word is cut anywhere if the model cannot take it.

        Scripts without spaces may be cut anywhere.
        """
        words = [match.span() for match in _WORD.finditer(tokens.line, *span)]
        packed = _packed(words, tokens.sizes(words), len(words), room)
        tokens.ids(packed)  # all at once
        return [part for each in packed for part in self._halves(tokens, each, room)]

    def _with_signs(self, tokens: _LineTokens, parts: list[Span]) -> list[Span]:
        """The parts, where those without a letter or digit are joined to a neighbour: alone, a model would invent."""
        joined: list[Span] = []
        for start, end in parts:
            if joined:
                last = joined[-1]
                says_nothing = not (_has_word(tokens.line[start:end]) and _has_word(tokens.line[slice(*last)]))
                if says_nothing and tokens.sizes([(last[0], end)])[0] <= self.longest:
                    joined[-1] = (last[0], end)
                    continue
            joined.append((start, end))
        return joined

    def _halves(self, tokens: _LineTokens, span: Span, room: int) -> list[Span]:
        """The span halved again and again until every part fits."""
        start, end = span
        wide = _is_wide(tokens.line[(start + end) // 2])
        if end - start < 2 or tokens.sizes([span])[0] <= (room if wide else self.longest):
            return [span]
        middle = (start + end) // 2
        return self._halves(tokens, (start, middle), room) + self._halves(tokens, (middle, end), room)


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _is_wide(character: str) -> bool:
    """Whether a character is of a script without spaces, such as Chinese."""
    return unicodedata.east_asian_width(character) in "WF"


def _packed(spans: list[Span], sizes: list[int], most: int, room: int) -> list[Span]:
    """Neighbours joined, up to `most` of them, as long as their sizes fit into `room`."""
    packed: list[Span] = []
    joined, taken = most, 0
    for (start, end), size in zip(spans, sizes, strict=True):
        if joined < most and taken + size <= room:
            packed[-1] = (packed[-1][0], end)
            joined, taken = joined + 1, taken + size
        else:
            packed.append((start, end))
            joined, taken = 1, size
    return packed


def _sentences_in(spans: list[Span], sentences: list[Span]) -> list[int]:
    """How many sentences each span is, or 0 if it begins or ends inside one."""
    begins = {start: number for number, (start, _) in enumerate(sentences)}
    ends = {end: number for number, (_, end) in enumerate(sentences, 1)}
    return [ends[end] - begins[start] if start in begins and end in ends else 0 for start, end in spans]


def space_between(piece: TextPiece, source: str, target: str) -> str:
    """The space between two pieces of a translation, given the source and target before it: that of the source.

    Scripts without spaces, or without one after a sentence, may be translated into scripts that need one.
    """
    if piece.before or not target or _is_wide(target[-1]):
        return piece.before
    last = _CLOSING.sub("", source)[-1:]
    return " " if last and (_is_wide(last) or last in _INDIC_ENDS) else ""
