"""What heedful's engine computes for a translation pipeline, apart from decoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heedful.core.model import CoreModel
from heedful.core.sequences import score_targets


class CorePairs:
    """Computes pairs one after another, their rows side by side."""

    def __init__(self, model: CoreModel) -> None:
        self.model = model

    def token_scores(self, pairs: list[tuple[list[int], list[int]]]) -> list[list[float]]:
        """The log-probabilities of the tokens of each target, and of its end."""
        sources = [self.model.frame(source)[0] for source, _ in pairs]
        scores, _ = score_targets(self.model, sources, [target for _, target in pairs])
        return [each.tolist() for each in scores]

    def cross_weights(self, sources: list[list[int]], targets: list[list[int]]) -> list[NDArray[np.float32]]:
        """Per pair, the mean weights T S of cross-attention."""
        framed = [self.model.frame(source)[0] for source in sources]
        _, weights = score_targets(self.model, framed, targets, align=True)
        return [each[:-1, :-1] for each in weights]
