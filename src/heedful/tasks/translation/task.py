"""Translation as the training loop sees it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import sacrebleu
import torch
from torch import Tensor

from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.scheduler import decode
from heedful.prepared.batches import BucketedBatches
from heedful.tasks.task import Indices, LearningSettings, Validation
from heedful.tasks.translation.data import PreparedTranslation
from heedful.tasks.translation.loss import TranslationBatch, collate_pairs, mean_loss, source_gain, translation_loss
from heedful.tasks.translation.model import TranslationModel
from heedful.tasks.validation_signs import EXAMPLES_TO_READ, LONGEST_EXAMPLE, summarise_answers

# Decoding is the slow part of a validation: BLEU is taken over this many pairs at most.
DECODED_PAIRS = 200
SHOWN_EXAMPLES = 3


class TranslationTask:
    """Sentence pairs, the model that learns from them, and its validation."""

    def __init__(self, model: TranslationModel, data: PreparedTranslation, settings: LearningSettings) -> None:
        self.model, self.data, self.settings = model, data, settings
        train, valid = data.train, data.valid
        # One more than the ids: the end token.
        self.batches = BucketedBatches(
            train.source_lengths + 1, train.target_lengths + 1, settings.tokens_per_batch, settings.seed
        )
        self.valid_batches = BucketedBatches(
            valid.source_lengths + 1, valid.target_lengths + 1, settings.tokens_per_batch, settings.seed
        ).epoch(0)

    @property
    def width(self) -> int:
        """The model's width."""
        return self.model.output.in_features

    @property
    def unit(self) -> str:
        """Target tokens."""
        return "target tokens"

    @property
    def validation_tokens(self) -> int:
        """Those of the held-out pairs, and those of translations, which young models make far too long."""
        valid = self.data.valid
        decoded = valid.source_lengths[:DECODED_PAIRS] + DecodingOptions().max_extra
        return int(valid.source_lengths.sum() + valid.target_lengths.sum() + decoded.sum())

    @property
    def largest_loss(self) -> float:
        """Four times the loss of guessing all tokens alike."""
        return 4.0 * math.log(self.model.output.out_features)

    def epoch_batches(self, epoch: int) -> Sequence[Indices]:
        """The batches of an epoch."""
        return self.batches.epoch(epoch)

    def collate(self, indices: Indices) -> TranslationBatch:
        """Some pairs as tensors on the model's device."""
        return collate_pairs(self.data.train, indices, self.model)

    def loss(self, batch: TranslationBatch) -> tuple[Tensor, Tensor]:
        """The summed loss, with and without label smoothing."""
        with torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.settings.bf16):
            return translation_loss(self.model, batch, self.settings.label_smoothing)

    def validate(self) -> Validation:
        """The loss over all held-out pairs, BLEU over some of them, and a few translations."""
        valid = self.data.valid
        loss = mean_loss(self.model, valid, self.valid_batches)
        count = min(len(valid), DECODED_PAIRS)
        requests = [Request(index, valid.source(index).tolist()) for index in range(count)]
        texts = [""] * count
        for result in decode(self.model, requests, DecodingOptions(beam=1), max_sentences=64):
            texts[result.index] = self.data.tokenizer.decode(result.hypotheses[0].tokens)
        references = [valid.target_text(index) for index in range(count)]
        bleu = sacrebleu.BLEU().corpus_score(texts, [references]).score
        examples = [
            {"source": valid.source_text(index), "translation": texts[index], "reference": references[index]}
            for index in range(min(count, SHOWN_EXAMPLES))
        ]
        answers = summarise_answers(texts, references, str)
        return Validation(loss, {"BLEU": bleu}, examples, answers, source_gain(self.model, valid, self.valid_batches))

    def read_examples(self, model: TranslationModel) -> Iterator[None]:
        """Let a model read a few held-out pairs, one at a time."""
        valid = self.data.valid
        short = np.flatnonzero(np.maximum(valid.source_lengths, valid.target_lengths) < LONGEST_EXAMPLE)
        for index in short[:EXAMPLES_TO_READ]:
            pair = collate_pairs(valid, np.array([index]), model)
            model.hidden(pair.source_BS, pair.source_lengths_B, pair.target_BT)
            yield
