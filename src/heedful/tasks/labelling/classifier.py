"""A classifier, ready to use."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, overload

import numpy as np

from heedful.tasks.classification import Classification
from heedful.tasks.encoding.pipeline import DEFAULT_BATCH_SIZE, Encoder, probabilities
from heedful.tasks.given_texts import Text, is_one, refuse_pairs, texts_or_pairs_as_list
from heedful.tasks.remarks import TextWarning
from heedful.text.framing import Framed

if TYPE_CHECKING:
    from heedful.tasks.encoding.attention import Predicted


class SingleTextWarning(TextWarning):
    """A single text was labelled by a model that has seen only pairs."""


class Classifier(Encoder):
    """A model that labels texts, or pairs of texts."""

    @property
    def takes_pairs(self) -> bool:
        """Whether it labels pairs of texts, too."""
        # Earlier versions of heedful trained models without segments on pairs.
        return self.config.pairs_only or self.model.config.embedding.segments > 1

    def looked_into(self, text: Text, target: str | None) -> tuple[Framed, tuple[str, ...], Predicted | None]:
        """A text or a pair, and how it is labelled."""
        from heedful.tasks.encoding.attention import Predicted

        return *self.framed(text, target), Predicted(None, self.config.labels.__getitem__)

    @overload
    def classify(  # type: ignore[overload-overlap]
        self, texts: Text, *, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Classification: ...

    @overload
    def classify(self, texts: Iterable[Text], *, batch_size: int = DEFAULT_BATCH_SIZE) -> list[Classification]: ...

    def classify(
        self, texts: Text | Iterable[Text], *, batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Classification | list[Classification]:
        """Label one text, or several in order; a pair is a tuple, and a blank text gets no label."""
        given = texts_or_pairs_as_list(texts)
        if not self.takes_pairs:
            refuse_pairs(given)
        framed = self.frame(given)
        filled = [index for index, text in enumerate(given) if "".join(text).strip()]
        if self.config.pairs_only:
            for index in filled:
                if isinstance(given[index], str):
                    remark = "is a single text, but this model learned from pairs: its label means little"
                    warnings.warn(SingleTextWarning(index, remark), stacklevel=2)
        logits = self.logits([framed[index] for index in filled], batch_size)
        results = [Classification()] * len(given)
        for index, row in zip(filled, logits, strict=True):
            scores = probabilities(row)
            order = np.argsort(-row, kind="stable")
            ranking = tuple((self.config.labels[place], float(scores[place])) for place in order)
            results[index] = Classification(*ranking[0], ranking)
        return results[0] if is_one(texts) else results
