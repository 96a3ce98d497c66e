"""Which source word a target word came from, by cross-attention."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.inspection.attention.recording import recorders_by_kind, recording_view
from heedful.tasks.translation.answers import Alignment
from heedful.tasks.translation.task import TranslationModel, collate
from heedful.text.tokenizer import Tokenizer


class Aligner:
    """Reads word alignments off a model's cross-attention."""

    def __init__(self, model: TranslationModel, tokenizer: Tokenizer) -> None:
        assert isinstance(model, nn.Module)
        self.view, _ = recording_view(model)
        self.recorders = recorders_by_kind(self.view)["cross"]
        self.tokenizer = tokenizer

    @torch.inference_mode()
    def weights(self, sources: list[list[int]], targets: list[list[int]]) -> list[Tensor]:
        """Per pair, the weights T S from each target token to each source token, END left out on both sides."""
        batch = collate(
            [np.array(ids) for ids in sources], [np.array(ids) for ids in targets], self.view.special_tokens
        )
        batch = batch.to(self.view.device)
        self.view.hidden(batch.source_BS, batch.target_BT, batch.source_lengths_B)
        recorded = [each.weights for each in self.recorders if each.weights is not None]
        # The position that predicts a token is the one before it, which the shifted input already is.
        mean_BTS = torch.stack([weights_BHTS.mean(1) for weights_BHTS in recorded]).mean(0).cpu()
        return [
            mean_BTS[row, : len(target), : len(source)]
            for row, (source, target) in enumerate(zip(sources, targets, strict=True))
        ]

    def word_weights(self, sources: list[list[int]], targets: list[list[int]]) -> list[NDArray[np.float64]]:
        """Per pair, the weight from each target word to each source word: a mean over the word's subwords."""
        return [
            self._by_word(source, target, weights.numpy())
            for source, target, weights in zip(sources, targets, self.weights(sources, targets), strict=True)
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
