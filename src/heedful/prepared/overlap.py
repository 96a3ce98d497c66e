"""Held-out examples of given files that are in the training files too, known by the digests of their contents."""

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b

import numpy as np

from heedful.prepared.data_report import DataReport
from heedful.prepared.held_out import Keys
from heedful.text.documents import TextPart

# How many training keys are compared at a time: they may be in a mapped file.
_TOGETHER = 1 << 20


def count_shared(held_out: Keys, train: Keys) -> int:
    """How many of the held-out keys are among those for training; memory grows with the held-out ones alone."""
    distinct, times = np.unique(held_out, return_counts=True)
    found = np.zeros(len(distinct), np.bool_)
    for start in range(0, len(train) if len(distinct) else 0, _TOGETHER):
        some = train[start : start + _TOGETHER]
        nearest = np.minimum(np.searchsorted(distinct, some), len(distinct) - 1)
        found[nearest[distinct[nearest] == some]] = True
    return int(times[found].sum())


def tell_shared(report: DataReport, shared: int, held_out: int, what: str) -> None:
    """Put into the report, and on the screen, how many held-out examples are trained on, if any are."""
    if shared:
        verb, them = ("is", "it") if shared == 1 else ("are", "them")
        told = f"{shared:,} of {held_out:,} held-out {what} {verb} also in the training files"
        report.warn(f"{told}: the scores on {them} say little")


class SharedDocuments:
    """Which of the held-out documents are among those for training, whose parts are looked at one by one."""

    def __init__(self, held_out: Iterable[TextPart]) -> None:
        self._times = Counter(_digests(held_out))
        self._found: set[bytes] = set()
        self._digest = blake2b(digest_size=8)

    def look(self, part: TextPart) -> None:
        """Take in a part of a document to train on."""
        digest = _taken_in(part, self._digest)
        if digest is not None:
            self._digest = blake2b(digest_size=8)
            if digest in self._times:
                self._found.add(digest)

    def tell(self, report: DataReport) -> None:
        """Report how many there are."""
        shared = sum(self._times[digest] for digest in self._found)
        tell_shared(report, shared, self._times.total(), "documents")


def _digests(parts: Iterable[TextPart]) -> Iterator[bytes]:
    state = blake2b(digest_size=8)
    for part in parts:
        digest = _taken_in(part, state)
        if digest is not None:
            yield digest
            state = blake2b(digest_size=8)


def _taken_in(part: TextPart, state: blake2b) -> bytes | None:
    """Add a part to the digest of its document, which is complete if it ends there."""
    state.update(part.text.encode("utf-8", "replace"))
    return state.digest() if part.ends else None
