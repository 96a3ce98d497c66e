"""Beam search; with one beam it is greedy search."""

from __future__ import annotations

import numpy as np

from heedful.decoding.slots import Children, Slots
from heedful.decoding.token_scores import TokenScores, top_tokens


class BeamSearch:
    """Continues the hypotheses with the largest sums of log-probabilities.

    An ended hypothesis counts only if it is among them. Among equals, the lower row comes first, then the lower token
    id.
    """

    # All rows begin alike, so the first stands for all.
    first_rows = 1

    def choose(self, scores: TokenScores, slots: Slots) -> Children:
        """The best continuations of each sentence, one for each of its places."""
        totals_NK = slots.totals[: slots.used]
        beam = totals_NK.shape[1]
        # No more than `beam` continuations of one row can be among the best `beam` of the sentence.
        columns_AC = top_tokens(scores.logits_AV, min(beam, scores.logits_AV.shape[1]))
        scores_NX = scores.spread(scores.log_probabilities(columns_AC), totals_NK.shape, -np.inf)
        tokens_NX = scores.spread(scores.tokens(columns_AC), totals_NK.shape, slots.end)
        per_row = tokens_NX.shape[1] // beam
        totals_NX = totals_NK.repeat(per_row, axis=1) + scores_NX
        best_NK = np.argsort(-totals_NX, axis=1, kind="stable")[:, :beam]
        totals = np.take_along_axis(totals_NX, best_NK, 1)
        totals[slots.own_rows >= slots.places[:, None]] = -np.inf
        return Children(
            best_NK // per_row,
            np.take_along_axis(tokens_NX, best_NK, 1),
            np.take_along_axis(scores_NX, best_NK, 1),
            totals,
        )
