"""A text in pieces, as it is decoded, and its translation, joined from theirs."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.tasks.translation.answers import Alignment, TranslatedPiece, Translation
from heedful.tasks.translation.segmentation import TextPiece, space_between
from heedful.text.tokenizer import words


@dataclass(frozen=True)
class Start:
    """The ids that the translation of a piece must begin with; if they are the `whole` of it, nothing follows them."""

    ids: Sequence[int] = ()
    whole: bool = False


@dataclass(frozen=True)
class TextInPieces:
    """A text in pieces, the token ids of each, and how its translation is to begin."""

    pieces: list[TextPiece]
    sources: list[list[int]]
    starts: list[Start]

    def requests(self, indices: Iterable[int]) -> list[Request]:
        """The requests to decode, one per piece; a blank text has none."""
        numbered = zip(indices, self.sources, self.starts, strict=False)  # there may be more indices than pieces
        return [
            Request(index, source, start.ids, len(start.ids) if start.whole else None)
            for index, source, start in numbered
        ]


def join_pieces(pieces: list[TextPiece], translations: list[Translation], ranked: bool) -> Translation:
    """The translation of a text from those of its pieces; hypotheses that are not `ranked` are samples, by number."""
    if not translations:
        return Translation("")
    if len(translations) == 1 and ranked:
        return translations[0]
    best_of = [each.nbest for each in translations]
    if len(best_of) == 1:
        nbest = best_of[0]
    else:
        # Were samples joined by rank, the likeliest of all pieces would always come together.
        choices = _best_sums(best_of) if ranked else zip(*best_of, strict=False)
        nbest = [_join_hypotheses(pieces, choice) for choice in choices]
    if not ranked:
        nbest = sorted(nbest, key=_place_of_sample)
    best = nbest[0]
    return Translation(best.text, best.score, best.tokens, best.token_scores, best.alignment, nbest, best.pieces)


def _place_of_sample(sample: Translation) -> tuple[int, float]:
    """What samples are sorted by: finished ones first, then by their scores; an end has a score, but is no token."""
    return len(sample.tokens) - len(sample.token_scores), -sample.score


class _Ranks(NamedTuple):
    """The rank of a piece's hypothesis, and the ranks for the pieces before it, which many choices share."""

    rank: int
    before: _Ranks | None

    def all(self) -> tuple[int, ...]:
        """The ranks for all pieces, in order."""
        found = []
        last: _Ranks | None = self
        while last:
            found.append(last.rank)
            last = last.before
        return tuple(reversed(found))


def _best_sums(best_of: list[list[Translation]]) -> list[Sequence[Translation]]:
    """Choices of one hypothesis per piece: the best of each, then those with the largest sums of log-probabilities.

    The first choice does not depend on the number of hypotheses, though a shorter hypothesis may have the larger sum.
    """
    count = max(map(len, best_of))
    first = (0,) * len(best_of)
    if count == 1:
        chosen = [first]
    else:
        sums: list[tuple[float, _Ranks | None]] = [(0.0, None)]
        for hypotheses in best_of:
            scores = [sum(each.token_scores) for each in hypotheses]
            found = [(total + score, _Ranks(rank, last)) for total, last in sums for rank, score in enumerate(scores)]
            sums = heapq.nlargest(count, found, key=lambda each: each[0])
        ranked = [last.all() for _, last in sums if last]
        chosen = [first, *(ranks for ranks in ranked if ranks != first)][:count]
    return [[each[rank] for each, rank in zip(best_of, ranks, strict=True)] for ranks in chosen]


def _join_hypotheses(pieces: list[TextPiece], hypotheses: Sequence[Translation]) -> Translation:
    alignment: Alignment | None = None if hypotheses[0].alignment is None else []
    joined: list[TranslatedPiece] = []
    offsets = [0, 0]
    source, target = "", ""
    for piece, hypothesis in zip(pieces, hypotheses, strict=True):
        between = space_between(piece, source, target) if joined else ""
        joined.append(TranslatedPiece(piece.text, hypothesis.text, between))
        if alignment is not None:
            # A piece that was cut out of a word continues the word before it.
            goes_on = [bool(source) and not piece.before, bool(target) and not between]
            shifts = [offset - each for offset, each in zip(offsets, goes_on, strict=True)]
            pairs = [(s + shifts[0], t + shifts[1]) for s, t in hypothesis.alignment or []]
            # A word joined from two pieces has a pair from each, which may be the same.
            alignment += pairs[1:] if pairs[:1] == alignment[-1:] else pairs
            offsets = [
                shift + len(words(text)) for shift, text in zip(shifts, (piece.text, hypothesis.text), strict=True)
            ]
        source, target = piece.text, hypothesis.text or target
    return Translation(
        "".join(each.before + each.text for each in joined),
        sum(score for each in hypotheses for score in each.token_scores),
        [token for each in hypotheses for token in each.tokens],
        # The scores of the tokens first, in their order, then those of the ends.
        [score for each in hypotheses for score in each.token_scores[: len(each.tokens)]]
        + [score for each in hypotheses for score in each.token_scores[len(each.tokens) :]],
        alignment,
        pieces=joined,
    )


def distinct_requests(requests: list[Request], options: DecodingOptions) -> tuple[list[Request], list[int]]:
    """The requests without those that repeat an earlier one, and for each the number of the one that answers it.

    A search finds the same for the same ids and the same limit. Samples are drawn by number, each for itself.
    """
    if options.sampling is not None:
        return requests, [request.index for request in requests]
    first: dict[tuple[tuple[int, ...], tuple[int, ...], int | None], Request] = {}
    keys = [(tuple(each.source), tuple(each.prefix), each.max_length) for each in requests]
    numbers = [first.setdefault(key, each).index for key, each in zip(keys, requests, strict=True)]
    return list(first.values()), numbers
