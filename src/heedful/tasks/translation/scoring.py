"""How likely a translation model finds given translations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from heedful.decoding.options import length_penalty
from heedful.errors import UserError
from heedful.tasks.translation.answers import Score

if TYPE_CHECKING:
    from heedful.tasks.translation.pipeline import Translator


def score_pairs(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    alpha: float,
    first_index: int = 0,
    names: Sequence[str] | None = None,
) -> list[Score]:
    """The scores of targets given their sources, over the length penalty for `alpha`.

    Errors call the pairs by their `names`, or by their numbers, counted from `first_index`. If `translate` translates a
    source in pieces, the score is the sum of their log-probabilities; a target with a different number of sentences is
    scored undivided, with a warning.
    """
    if len(sources) != len(targets):
        raise UserError(f"{len(sources)} sources, but {len(targets)} targets: each needs its counterpart")
    limit = translator.model.longest_target(0)
    pieces: list[tuple[list[int], list[int]]] = []
    counts = []
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), first_index + 1):
        own = translator.pieces_of_pair(source, target, index=number - 1 - first_index)
        for side, of_side in zip(("source", "target"), zip(*own, strict=True), strict=True):
            if limit is not None and max(map(len, of_side)) > limit:
                name = names[number - 1 - first_index] if names else f"pair {number}"
                raise UserError(
                    f"{name} has a {side} of more than {limit} subwords, which is all the model takes: shorten it, "
                    "or leave the pair out"
                )
        pieces += own
        counts.append(len(own))
    found = iter(translator.computation.token_scores(pieces))
    return [
        _score([score for each in islice(found, count) for score in each], alpha if count == 1 else 0.0)
        for count in counts
    ]


def _score(token_scores: list[float], alpha: float) -> Score:
    total = sum(token_scores)
    return Score(total, token_scores, total / length_penalty(len(token_scores), alpha))
