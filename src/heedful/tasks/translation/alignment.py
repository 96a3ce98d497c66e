"""Which source word a target word came from, by cross-attention."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heedful.tasks.translation.answers import Alignment
from heedful.tasks.translation.seam import PairComputation
from heedful.text.tokenizer import Tokenizer


class Aligner:
    """Reads word alignments off a model's cross-attention."""

    def __init__(self, computation: PairComputation, tokenizer: Tokenizer) -> None:
        self.computation, self.tokenizer = computation, tokenizer

    def word_weights(self, sources: list[list[int]], targets: list[list[int]]) -> list[NDArray[np.float64]]:
        """Per pair, the weight from each target word to each source word: a mean over the word's subwords."""
        return [
            self._by_word(source, target, weights)
            for source, target, weights in zip(
                sources, targets, self.computation.cross_weights(sources, targets), strict=True
            )
        ]

    def align(self, sources: list[list[int]], targets: list[list[int]]) -> list[Alignment]:
        """Per pair, (source word, target word) for every target word: the source word it attends to most."""
        return [
            [(int(row.argmax()), word) for word, row in enumerate(weights)] if weights.size else []
            for weights in self.word_weights(sources, targets)
        ]

    def _by_word(self, source: list[int], target: list[int], weights_TS: NDArray[np.float32]) -> NDArray[np.float64]:
        source_words, target_words = (np.array(self.tokenizer.word_of_token(ids)) for ids in (source, target))
        if not source or not target:
            return np.zeros((0, 0))
        by_word = np.zeros((target_words.max() + 1, source_words.max() + 1))
        np.add.at(by_word, (target_words[:, None], source_words[None]), weights_TS)
        return by_word / np.bincount(target_words)[:, None]
