"""Cutting a line that is longer than a model can take."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# Ends of sentences in Latin, Greek, Cyrillic, Arabic, Devanagari and East Asian scripts, and spaces.
_SENTENCE_END = re.compile(r"(?<=[.!?…;؟।])\s+|(?<=[。！？])\s*")
_SPACE = re.compile(r"\s+")

Count = Callable[[str], int]


@dataclass(frozen=True)
class Piece:
    """A part of a line, and what stands before it: a space, or nothing."""

    text: str
    before: str


def split_line(line: str, longest: int, count: Count) -> list[Piece]:
    """Pieces of at most `longest` subwords (by `count`): cut at sentence ends, else at spaces, else anywhere."""
    pieces: list[Piece] = []
    for start, end in _packed(line, (0, len(line)), _SENTENCE_END, longest, count):
        if count(line[start:end]) <= longest:
            pieces.append(_piece(line, start, end))
            continue
        for first, last in _packed(line, (start, end), _SPACE, longest, count):
            pieces.extend(_piece(line, *span) for span in _halves(line, (first, last), longest, count))
    return pieces


def _piece(line: str, start: int, end: int) -> Piece:
    return Piece(line[start:end], " " if line[:start][-1:].isspace() else "")


def _packed(
    line: str, span: tuple[int, int], cut: re.Pattern[str], longest: int, count: Count
) -> list[tuple[int, int]]:
    """Spans between the cuts inside a span, neighbours joined as long as they fit."""
    spans: list[tuple[int, int]] = []
    room, start = 0, span[0]
    cuts = [(match.start(), match.end()) for match in cut.finditer(line, *span)]
    for end, following in [*cuts, (span[1], span[1])]:
        if end > start:
            size = count(line[start:end])
            if spans and size <= room:
                spans[-1] = (spans[-1][0], end)
                room -= size
            else:
                spans.append((start, end))
                room = longest - size
        start = following
    return spans


def _halves(line: str, span: tuple[int, int], longest: int, count: Count) -> list[tuple[int, int]]:
    """Halves of halves, until every one fits."""
    start, end = span
    if count(line[start:end]) <= longest or end - start < 2:
        return [span]
    middle = (start + end) // 2
    return _halves(line, (start, middle), longest, count) + _halves(line, (middle, end), longest, count)
