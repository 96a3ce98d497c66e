"""Labelled texts as batches: one label per text for classification, one per word for tagging."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.tasks.encoding.batch import EncoderBatch, make_batch
from heedful.tasks.labelling.data import NO_LABEL, LabelledExamples
from heedful.tasks.padding import pad_rows
from heedful.tasks.task import Indices
from heedful.text.special_tokens import SpecialTokens


class LabelledTexts:
    """Examples that are the same in every epoch; with `by_word`, each label belongs to a token."""

    def __init__(self, examples: LabelledExamples, special_tokens: SpecialTokens, by_word: bool) -> None:
        self.examples, self.special_tokens, self.by_word = examples, special_tokens, by_word

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of tokens of each text."""
        return self.examples.ids.lengths

    def batch(self, indices: Indices, epoch: int) -> EncoderBatch:
        """Some texts as tensors."""
        examples = self.examples
        ids_BT = pad_rows([examples.ids[index] for index in indices], self.special_tokens.pad)
        lengths_B = torch.from_numpy(self.lengths[indices].astype(np.int64))
        first_B = torch.from_numpy(examples.first_lengths[indices].astype(np.int64))
        segments_BT = None
        if bool((first_B < lengths_B).any()):
            segments_BT = (torch.arange(ids_BT.shape[1]) >= first_B[:, None]).long()
        labels = pad_rows([examples.labels[index] for index in indices], NO_LABEL)
        return make_batch(ids_BT, lengths_B, segments_BT, labels if self.by_word else labels[:, 0])
