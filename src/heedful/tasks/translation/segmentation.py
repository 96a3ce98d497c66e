"""Splitting a line into pieces like the lines that a model was trained on."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from heedful.config import nearest
from heedful.errors import UserError
from heedful.text.sentences import Span, loose_spans, sentence_spans
from heedful.text.training_lines import TrainingLines

# `auto` splits lines that are unlike those of the training, `sentences` all, `none` what the model cannot take.
Split = Literal["auto", "sentences", "none"]

_WORD = re.compile(r"\S+")
_WIDE_END = re.compile("[。！？]$")

Encode = Callable[[list[str]], list[list[int]]]


@dataclass(frozen=True)
class Piece:
    """A part of a line, and the white space before it, if there is any."""

    text: str
    before: str


@dataclass(frozen=True)
class SplitLine:
    """The pieces of a line and the token ids of each.

    `longest` is the most subwords of a piece, before those that the model cannot take were cut.
    """

    pieces: list[Piece]
    sources: list[list[int]]
    longest: int


def join_lines(rows: list[str], split: list[SplitLine]) -> SplitLine:
    """The pieces of a text of several lines, blank ones among them: its line breaks stay between the pieces."""
    pieces: list[Piece] = []
    found, breaks = iter(split), 0
    for row in rows:
        if row:
            first, *others = next(found).pieces
            pieces += [Piece(first.text, "\n" * breaks if pieces else ""), *others]
            breaks = 0
        breaks += 1
    sources = [ids for each in split for ids in each.sources]
    return SplitLine(pieces, sources, max((each.longest for each in split), default=0))


def check_split(split: str) -> Split:
    """The way to split lines that has this name."""
    for known in get_args(Split):
        if split == known:
            return known
    raise UserError(f"split is {split!r}: {nearest(split, list(get_args(Split)))}")


class _LineTokens:
    """The token ids of stretches of one line, each of which is tokenised once."""

    def __init__(self, line: str, ids: list[int], encode: Encode) -> None:
        self.line = line
        self._encode = encode
        self._found: dict[Span, list[int]] = {(0, len(line)): ids}

    def ids(self, spans: list[Span]) -> list[list[int]]:
        """The token ids of each stretch."""
        new = [span for span in dict.fromkeys(spans) if span not in self._found]
        if new:
            encoded = self._encode([self.line[start:end] for start, end in new])
            self._found.update(zip(new, encoded, strict=True))
        return [self._found[span] for span in spans]

    def sizes(self, spans: list[Span]) -> list[int]:
        """The number of token ids of each stretch."""
        return list(map(len, self.ids(spans)))


@dataclass(frozen=True)
class Splitter:
    """Splits lines for one model: `encode` gives the token ids of texts, `longest` is how many the model takes.

    A model that does not record the lines of its training is taken to have seen one sentence per line.
    """

    encode: Encode
    longest: int
    language: str | None
    seen: TrainingLines | None

    def split(self, line: str, ids: list[int], split: Split) -> SplitLine:
        """The line, which has these token ids, or its pieces: sentences, and parts of those that are too long."""
        whole = SplitLine([Piece(line, "")], [ids], len(ids))
        if split == "none" and len(ids) <= self.longest:
            return whole
        sentences = sentence_spans(line, self.language)
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
        packed = [
            part
            for span, size in zip(joined, tokens.sizes(joined), strict=True)
            for part in ([span] if size <= most_seen or split == "none" else _loosely_cut(tokens, span, usual))
        ]
        packed_sizes = tokens.sizes(packed)
        spans = [
            part
            for span, size in zip(packed, packed_sizes, strict=True)
            for part in ([span] if size <= self.longest else self._cut(tokens, span))
        ]
        ends = [spans[0][0], *(end for _, end in spans)]
        pieces = [Piece(line[start:end], line[last:start]) for last, (start, end) in zip(ends, spans, strict=False)]
        return SplitLine(pieces, tokens.ids(spans), max(packed_sizes))

    def _cut(self, tokens: _LineTokens, span: Span) -> list[Span]:
        """The parts of a span that the model cannot take: cut at spaces, and else anywhere."""
        words = [match.span() for match in _WORD.finditer(tokens.line, *span)]
        packed = _packed(words, tokens.sizes(words), len(words), self.longest)
        return [part for each in packed for part in self._halves(tokens, each)]

    def _halves(self, tokens: _LineTokens, span: Span) -> list[Span]:
        """Halves of halves, until every one fits."""
        start, end = span
        if end - start < 2 or tokens.sizes([span])[0] <= self.longest:
            return [span]
        middle = (start + end) // 2
        return self._halves(tokens, (start, middle)) + self._halves(tokens, (middle, end))


def _loosely_cut(tokens: _LineTokens, span: Span, usual: int) -> list[Span]:
    """The parts of a sentence that is longer than any line of the training, at signs that may end a part of it."""
    parts = loose_spans(tokens.line, span)
    return _packed(parts, tokens.sizes(parts), len(parts), usual)


def _packed(spans: list[Span], sizes: list[int], most: int, room: int) -> list[Span]:
    """Neighbours joined, up to `most` of them, as long as their sizes fit into the room."""
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


def space_between(piece: Piece, source: str, target: str) -> str:
    """What stands between two pieces of a translation, after its beginnings in source and target: the source's space.

    Scripts that end a sentence without a space are translated into some that need one.
    """
    ends_sentence = not piece.before and _WIDE_END.search(source)
    wide = unicodedata.east_asian_width(target[-1:] or "W") in "WF"
    return " " if ends_sentence and not wide else piece.before
