"""What heedful's engine computes for a language model's pipeline, apart from decoding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heedful.core.model import CoreModel
from heedful.core.sequences import TOKENS_AT_A_TIME, score_targets


class CoreText:
    """Computes the windows of a text."""

    def __init__(self, model: CoreModel) -> None:
        self.model = model

    def loss(self, ids: NDArray[np.integer]) -> float:
        """The summed loss of all ids but the first."""
        per_call = max(1, TOKENS_AT_A_TIME // self.model.max_length) * self.model.max_length
        return sum(self._loss(ids[start : start + per_call + 1]) for start in range(0, len(ids) - 1, per_call))

    def _loss(self, ids: NDArray[np.integer]) -> float:
        """The same for a few windows."""
        firsts, targets = [], []
        for start in range(0, len(ids) - 1, self.model.max_length):
            window = ids[start : start + self.model.max_length + 1]
            read = window[:-1]
            # A document begins with the end token of the one before it, and sees nothing else of that one.
            begins = [0, *(np.flatnonzero(read[1:] == self.model.special_tokens.end) + 1).tolist(), len(read)]
            firsts += [[int(window[begin])] for begin in begins[:-1]]
            targets += [window[begin + 1 : end + 1].tolist() for begin, end in pairwise(begins)]
        scores, _ = score_targets(self.model, firsts, targets)
        return -float(sum(each.sum(dtype=np.float64) for each in scores))
