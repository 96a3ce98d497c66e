"""Cutting a line that is longer than a model can take."""

from __future__ import annotations

import re
from collections.abc import Callable

# Ends of sentences in Latin, Greek, Cyrillic, Arabic, Devanagari and East Asian scripts.
_SENTENCE_END = re.compile(r"(?<=[.!?…;؟।])\s+|(?<=[。！？])\s*")


def split_line(line: str, longest: int, count: Callable[[str], int]) -> list[str]:
    """Pieces of at most `longest` subwords (by `count`): cut at sentence ends, else at spaces, else anywhere."""
    pieces: list[str] = []
    for sentence in _pack(_SENTENCE_END.split(line), longest, count):
        if count(sentence) <= longest:
            pieces.append(sentence)
            continue
        for words in _pack(sentence.split(), longest, count):
            pieces.extend([words] if count(words) <= longest else _cut(words, longest, count))
    return [piece for piece in pieces if piece]


def _pack(parts: list[str], longest: int, count: Callable[[str], int]) -> list[str]:
    """Join neighbouring parts as long as they fit."""
    packed: list[str] = []
    room = 0
    for part in filter(None, parts):
        size = count(part)
        if packed and size <= room:
            packed[-1] += " " + part
            room -= size
        else:
            packed.append(part)
            room = longest - size
    return packed


def _cut(text: str, longest: int, count: Callable[[str], int]) -> list[str]:
    """Halves of halves, until every piece fits."""
    if count(text) <= longest or len(text) < 2:
        return [text]
    middle = len(text) // 2
    return _cut(text[:middle], longest, count) + _cut(text[middle:], longest, count)
