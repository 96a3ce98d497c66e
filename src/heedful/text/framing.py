"""Token ids between the special tokens that an encoder expects: class token, text, separator, and so on."""

from collections.abc import Sequence
from typing import NamedTuple

from heedful.text.special_tokens import SpecialTokens


class Framed(NamedTuple):
    """The ids of one or two texts with special tokens, how many belong to the first, and whether some were cut out."""

    ids: list[int]
    first_length: int
    shortened: bool


def frame(texts: Sequence[Sequence[int]], max_length: int, special: SpecialTokens, *, cut_end: bool = False) -> Framed:
    """Put one text, or a pair, between special tokens, and cut out the middle of what is too long, or its end.

    The beginning and the end of a text tell most about it, but not to a model that never saw the end. Of a pair, the
    longer text is cut to the length of the shorter one before both are.
    """
    room = max_length - 1 - len(texts)
    lengths = [len(text) for text in texts]
    if sum(lengths) > room and len(texts) == 2:
        shorter = min(*lengths, room // 2)
        lengths = [min(length, room - shorter) for length in lengths]
        if sum(lengths) > room:
            lengths = [room - room // 2, room // 2]
    elif sum(lengths) > room:
        lengths = [room]
    shorten = _without_end if cut_end else _without_middle
    kept = [shorten(text, length) for text, length in zip(texts, lengths, strict=True)]
    ids = [special.start]
    for text in kept:
        ids += [*text, special.end]
    return Framed(ids, len(kept[0]) + 2, sum(lengths) < sum(len(text) for text in texts))


def _without_end(text: Sequence[int], length: int) -> list[int]:
    """The beginning of a text."""
    return list(text[:length])


def _without_middle(text: Sequence[int], length: int) -> list[int]:
    """All of a text, or its first and its last half."""
    if len(text) <= length:
        return list(text)
    last = length // 2
    return [*text[: length - last], *text[len(text) - last :]]


class FramedWords(NamedTuple):
    """The ids of some words with special tokens, and where each word begins."""

    ids: list[int]
    begins: list[int]


def frame_words(words: Sequence[Sequence[int]], max_length: int, special: SpecialTokens) -> list[FramedWords]:
    """Put words, given as their subwords, between special tokens: in several pieces if they are too many."""
    room = max_length - 2
    pieces: list[FramedWords] = []
    ids: list[int] = []
    begins: list[int] = []

    def finish() -> None:
        pieces.append(FramedWords([special.start, *ids, special.end], list(begins)))
        ids.clear()
        begins.clear()

    for word in words:
        # A word that the vocabulary has nothing for must have a place to be tagged at, too.
        subwords = list(word[:room]) or [special.end if special.unknown is None else special.unknown]
        if len(ids) + len(subwords) > room:
            finish()
        begins.append(len(ids) + 1)
        ids += subwords
    finish()
    return pieces
