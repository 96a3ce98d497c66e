"""How likely a translation model finds given translations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import torch

from heedful.decoding.options import length_penalty
from heedful.errors import UserError
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.tasks.translation.answers import Score
from heedful.tasks.translation.task import TranslationModel, collate, token_log_probabilities
from heedful.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from heedful.tasks.translation.pipeline import Translator

MOST_PAIRS = 128
# Logits that are in memory at once when given translations are scored.
SCORED_LOGITS = 2**24


def score_pairs(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], alpha: float, first_index: int = 0
) -> list[Score]:
    """The scores of targets given their sources, over the length penalty of that alpha; counted from `first_index`.

    Where `translate` translates a source in pieces, the score is the sum of their log-probabilities.
    """
    if len(sources) != len(targets):
        raise UserError(f"{len(sources)} sources, but {len(targets)} targets: each needs its counterpart")
    limit = translator.model.longest_target(0)
    pieces: list[tuple[list[int], list[int]]] = []
    counts = []
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), first_index + 1):
        own = translator.pieces_of_pair(source, target)
        if limit is not None and max(len(ids) for pair in own for ids in pair) > limit:
            raise UserError(f"pair {number} has a text of more than {limit} subwords, which is all the model takes")
        pieces += own
        counts.append(len(own))
    found = iter(_token_scores(translator.model, translator.tokenizer, pieces))
    return [
        _score([score for each in islice(found, count) for score in each], alpha if count == 1 else 0.0)
        for count in counts
    ]


def _token_scores(
    model: TranslationModel, tokenizer: Tokenizer, pairs: list[tuple[list[int], list[int]]]
) -> list[list[float]]:
    """The log-probabilities of the tokens of each target, and of its end."""
    order = sorted(range(len(pairs)), key=lambda index: -len(pairs[index][1]))
    scores: dict[int, list[float]] = {}
    with one_thread(), flushed_denormals(), torch.inference_mode():
        while order:
            # The longest target comes first, and bounds the logits of its batch.
            row = (len(pairs[order[0]][1]) + 1) * tokenizer.vocabulary_size
            size = max(1, min(MOST_PAIRS, SCORED_LOGITS // row))
            chosen, order = order[:size], order[size:]
            source_rows, target_rows = ([np.array(pairs[i][side]) for i in chosen] for side in (0, 1))
            batch = collate(source_rows, target_rows, model.special_tokens)
            rows = token_log_probabilities(model, batch.to(model.device))
            scores.update({i: each.tolist() for i, each in zip(chosen, rows, strict=True)})
    return [scores[index] for index in range(len(pairs))]


def _score(token_scores: list[float], alpha: float) -> Score:
    total = sum(token_scores)
    return Score(total, token_scores, total / length_penalty(len(token_scores), alpha))
