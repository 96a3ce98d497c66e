"""The hypotheses of every sentence, in arrays over all slots and rows.

The rules of the search, for beams and samples alike:
- A sentence has a fixed number of places. A running hypothesis takes one, and a finished one keeps its own,
  so that a beam of 1 is greedy search, and every search ends.
- A sentence is done when no running hypothesis can still beat the worst of its `nbest` best finished ones:
  log-probabilities are never above 0, so a sum can only fall, and no penalty divides it by more than the one
  at the maximum length.
- It is also done after the step at which its hypotheses hold their maximum number of tokens: that step only
  shows which of them end there. Those that do not are unfinished; the best of them make up for finished ones
  where there are fewer than `nbest`. The same holds if the vocabulary leaves no way to continue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.decoding.hypothesis import Hypothesis, Request
from heedful.decoding.options import DecodingOptions, length_penalty

SENTENCE = np.dtype(
    [(name, np.int64) for name in ("index", "length", "shortest", "longest", "forced", "num_ended", "number")]
    + [("seed", np.uint64)]
)
TOKEN = np.dtype([("token", np.int32), ("parent", np.int32), ("score", np.float32)])
ENDED = np.dtype([("score", np.float64), ("length", np.int32), ("row", np.int32), ("end", np.float32)])


@dataclass(frozen=True)
class Children:
    """The hypotheses proposed for the places of each sentence, best first: N sentences, K places.

    Each continues the row in `parents` by the token in `tokens`, whose log-probability is in `scores`; `totals` are the
    sums over the whole hypothesis, -inf where a place stays empty.
    """

    parents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    scores: NDArray[np.float32]
    totals: NDArray[np.float64]


class Slots:
    """The search state of up to `capacity` sentences; those of the first `used` slots are under way."""

    def __init__(self, capacity: int, target_length: int, first_rows: int, options: DecodingOptions, end: int) -> None:
        shape = (capacity, options.rows)
        self.end = end
        self.nbest, self.alpha, self.first_rows = options.nbest, options.length_penalty, first_rows
        self.sampling = options.sampling is not None
        self.seed = options.sampling.seed if options.sampling else 0
        self.used = 0
        self.sentences = np.zeros(capacity, SENTENCE)
        self.tokens = np.full(shape, end, np.int64)
        self.totals = np.full(shape, -np.inf)
        self.totals_before = self.totals.copy()
        self.history = np.zeros((capacity, target_length, options.rows), TOKEN)
        self.ended = np.zeros(shape, ENDED)
        self.penalties = np.array([length_penalty(n, self.alpha) for n in range(target_length + 2)])
        self.own_rows = np.arange(options.rows)

    def open(self, slot: int, request: Request, first: int, shortest: int, longest: int) -> None:
        """Begin a sentence, whose first step reads the token `first`, in a free slot or the first unused one."""
        forced = len(request.prefix)
        seed, number = request.draw or (self.seed, request.index)
        self.sentences[slot] = (request.index, 0, shortest, longest, forced, 0, number, seed)
        self.tokens[slot] = first
        self.totals[slot] = np.where(self.own_rows < self.first_rows, 0.0, -np.inf)
        self.ended["score"][slot] = -np.inf
        self.history["token"][slot, :forced] = np.asarray(request.prefix, np.int32)[:, None]
        self.used = max(self.used, slot + 1)

    def keep(self, slots: list[int]) -> None:
        """Keep these slots, in this order, at the front."""
        moved = [(new, old) for new, old in enumerate(slots) if new != old]
        if moved:
            new, old = map(list, zip(*moved, strict=True))
            for array in (self.sentences, self.tokens, self.totals, self.history, self.ended):
                array[new] = array[old]
        self.used = len(slots)

    @property
    def forced(self) -> NDArray[np.intp]:
        """The slots whose next token is given by a prefix."""
        sentences = self.sentences[: self.used]
        return np.flatnonzero(sentences["length"] < sentences["forced"])

    def forced_tokens(self, slots: NDArray[np.intp]) -> NDArray[np.int64]:
        """The next token of the prefix, for each row of these slots."""
        return np.asarray(self.history["token"][slots, self.sentences["length"][slots]], np.int64)

    @property
    def early(self) -> NDArray[np.bool_]:
        """Which slots hold fewer tokens than their minimum."""
        sentences = self.sentences[: self.used]
        return np.asarray(sentences["length"] < sentences["shortest"])

    @property
    def places(self) -> NDArray[np.int64]:
        """How many hypotheses each sentence in use may have running."""
        return np.asarray(len(self.own_rows) - self.sentences["num_ended"][: self.used])

    def advance(self, children: Children) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Take in one step; return the row of its own sentence that each row continues, and which slots are done."""
        used = self.used
        self.totals_before[:used] = self.totals[:used]
        running = children.totals > -np.inf
        ends = running & (children.tokens == self.end)
        if ends.any():
            self._record_ends(children, ends)
        child_NK = _arrange(children.parents, running & ~ends)
        empty = child_NK < 0
        parents = np.where(empty, self.own_rows, np.take_along_axis(children.parents, child_NK, 1))
        # An empty row may still run through the model; any token of the vocabulary will do.
        self.tokens[:used] = np.where(empty, self.end, np.take_along_axis(children.tokens, child_NK, 1))
        self.totals[:used] = np.where(empty, -np.inf, np.take_along_axis(children.totals, child_NK, 1))
        where = (np.arange(used), self.sentences["length"][:used])
        self.history["token"][where] = self.tokens[:used]
        self.history["parent"][where] = parents
        self.history["score"][where] = np.take_along_axis(children.scores, child_NK, 1)
        self.sentences["length"][:used] += 1
        done = np.flatnonzero(self._done())
        parents[done] = self.own_rows
        return parents, done

    def best_row(self, slot: int) -> int:
        """The row of the best hypothesis that is under way."""
        return int(self.totals[slot].argmax())

    def last_token(self, slot: int, row: int) -> tuple[int, int, float]:
        """The last token of a row, the row that it continued, and the token's log-probability."""
        token, parent, score = self.history[slot, self.sentences["length"][slot] - 1, row].item()
        return token, parent, score

    def tokens_so_far(self, slot: int, row: int) -> list[int]:
        """The tokens of a hypothesis that is under way."""
        return _walk(self.history[slot, : self.sentences["length"][slot]].tolist(), row)[0]

    def best_so_far(self, slot: int) -> list[int]:
        """The tokens of the hypothesis with the best score so far, whether it has ended or is under way."""
        length, row = int(self.sentences["length"][slot]), self.best_row(slot)
        if self.sentences["num_ended"][slot]:
            ended = self.ended[slot, self.ended["score"][slot].argmax()]
            if ended["score"] >= self.totals[slot, row] / self.penalties[length]:
                length, row = int(ended["length"]), int(ended["row"])
        return _walk(self.history[slot, :length].tolist(), row)[0]

    def _record_ends(self, children: Children, ends: NDArray[np.bool_]) -> None:
        sentence, child = ends.nonzero()
        number = self.sentences["num_ended"][sentence] + (ends.cumsum(1) - 1)[sentence, child]
        length = self.sentences["length"][sentence]
        ended = self.ended
        ended["score"][sentence, number] = children.totals[sentence, child] / self.penalties[length + 1]
        ended["length"][sentence, number] = length
        ended["row"][sentence, number] = children.parents[sentence, child]
        ended["end"][sentence, number] = children.scores[sentence, child]
        self.sentences["num_ended"][: self.used] += ends.sum(1)

    def _done(self) -> NDArray[np.bool_]:
        sentences = self.sentences[: self.used]
        kept = np.sort(self.ended["score"][: self.used], axis=1)[:, -self.nbest]
        attainable = self.totals[: self.used].max(1) / self.penalties[sentences["longest"] + 1]
        return np.asarray((attainable <= kept) | (sentences["length"] > sentences["longest"]))

    def hypotheses(self, slot: int) -> list[Hypothesis]:
        """The results of a sentence that the last step has found to be done."""
        length = int(self.sentences["length"][slot]) - 1
        history = self.history[slot, :length].tolist()
        ended = self.ended[slot, : self.sentences["num_ended"][slot]]
        found, rows = [], []
        for score, steps, row, end in ended[np.argsort(-ended["score"], kind="stable")][: self.nbest].tolist():
            tokens, scores = _walk(history[:steps], row)
            found.append(Hypothesis(tokens, [*scores, end], score, finished=True))
            rows.append(row)
        totals = self.totals_before[slot].copy()
        totals[ended["row"][ended["length"] == length]] = -np.inf
        for row in np.argsort(-totals, kind="stable")[: self.nbest - len(found)].tolist():
            if totals[row] > -np.inf:
                score = float(totals[row] / self.penalties[length])
                found.append(Hypothesis(*_walk(history, row), score, finished=False))
                rows.append(row)
        return [found[place] for place in np.argsort(rows)] if self.sampling else found


def _walk(history: list[list[tuple[int, int, float]]], row: int) -> tuple[list[int], list[float]]:
    """The tokens of a hypothesis and their scores, from its last row back to its first."""
    tokens, scores = [], []
    for rows in reversed(history):
        token, row, score = rows[row]
        tokens.append(token)
        scores.append(score)
    return tokens[::-1], scores[::-1]


def _arrange(parents_NK: NDArray[np.int64], running_NK: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each row the child that continues in it, or -1; a parent's best child stays in its row.

    For rows that stay, nothing that the model holds is copied.
    """
    sentences, places = parents_NK.shape
    child_NK = np.full((sentences, places), -1)
    sentence_N1 = np.arange(sentences)[:, None]
    # One place after the other, the last first, so that the best child of each parent is written last.
    for place in range(places - 1, -1, -1):
        rows = np.flatnonzero(running_NK[:, place])
        child_NK[rows, parents_NK[rows, place]] = place
    left_over = running_NK & (child_NK[sentence_N1, parents_NK] != np.arange(places))
    counts_N1 = left_over.sum(1, keepdims=True)
    if counts_N1.any():
        free_rows = np.argsort(child_NK >= 0, axis=1, kind="stable")
        children = np.argsort(~left_over, axis=1, kind="stable")
        sentence, number = (np.arange(places) < counts_N1).nonzero()
        child_NK[sentence, free_rows[sentence, number]] = children[sentence, number]
    return child_NK
