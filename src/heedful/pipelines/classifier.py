"""A classifier, ready to use."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from heedful.pipelines.encoder import DEFAULT_BATCH_SIZE, Encoder, Text, listed, probabilities


@dataclass(frozen=True)
class Classification:
    """The likeliest label of a text, and all of them with their probabilities, the likeliest first."""

    label: str = ""
    probability: float = 0.0
    ranking: list[tuple[str, float]] = field(default_factory=list)


class Classifier(Encoder):
    """A model that labels texts, or pairs of texts."""

    def classify(self, texts: Text | Iterable[Text], *, batch_size: int = DEFAULT_BATCH_SIZE) -> list[Classification]:
        """Label texts, in order; a pair is a tuple, and a blank text has no label."""
        given = listed(texts)
        framed = self.frame(given)
        filled = [index for index, text in enumerate(given) if "".join(text).strip()]
        logits = self.logits([framed[index] for index in filled], batch_size)
        results = [Classification()] * len(given)
        for index, row in zip(filled, logits, strict=True):
            scores = probabilities(row)
            ranking = [(self.config.labels[place], float(scores[place])) for place in np.argsort(-row, kind="stable")]
            results[index] = Classification(*ranking[0], ranking)
        return results
