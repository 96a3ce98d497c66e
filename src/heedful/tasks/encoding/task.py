"""What all tasks of an encoder have in common, as the training loop sees them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.machine.devices import side_by_side
from heedful.models.encoder_only import EncoderOnly
from heedful.prepared.batches import BucketedBatches
from heedful.tasks.classification_metrics import accuracy, confusion_matrix, macro_f1
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.tasks.encoding.batch import EncoderBatch, encoder_loss, label_features
from heedful.tasks.task import Indices, LearningSettings, Validation
from heedful.tasks.validation_signs import EXAMPLES_TO_READ, LONGEST_EXAMPLE, summarise_answers, unrelated_loss

# With few classes, too, a confident wrong answer can cost as much as with this many.
FEWEST_OUTPUTS = 1000
# What is answered, by head.
UNITS = {"masked": "hidden tokens", "classes": "texts", "tags": "words"}


class Texts(Protocol):
    """Texts to learn from, with the right answers."""

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of tokens of each, as the model sees them."""

    def batch(self, indices: Indices, epoch: int) -> EncoderBatch:
        """Some of them as tensors; anything random depends only on the epoch and on each text's index."""


class EncoderTask:
    """Texts, the encoder that learns from them, and its validation; `name` gives an answer's number in words."""

    def __init__(
        self, model: EncoderOnly, train: Texts, valid: Texts, settings: LearningSettings, name: Callable[[int], str]
    ) -> None:
        self.model, self.train, self.valid, self.settings, self.name = model, train, valid, settings, name
        self.batches = self._bucketed(train)
        self.valid_batches = list(self._bucketed(valid).epoch(0))

    def _bucketed(self, texts: Texts) -> BucketedBatches:
        lengths, settings = texts.lengths, self.settings
        return BucketedBatches(lengths, np.zeros_like(lengths), settings.tokens_per_batch, settings.seed)

    @property
    def width(self) -> int:
        """The model's width."""
        return self.model.config.width

    @property
    def unit(self) -> str:
        """Texts, words or hidden tokens, by the model's head."""
        return UNITS[self.model.config.head]

    @property
    def validation_tokens(self) -> int:
        """Those of the held-out texts."""
        return int(self.valid.lengths.sum())

    @property
    def largest_loss(self) -> float:
        """Four times the loss of a uniform guess."""
        return 4.0 * math.log(max(FEWEST_OUTPUTS, self.model.output_layer.out_features))

    def epoch_batches(self, epoch: int) -> Sequence[Indices]:
        """The batches of an epoch; indices keep counting from epoch to epoch, so they also identify the epoch."""
        return self.batches.epoch(epoch, numbered_from=epoch * len(self.train.lengths))

    def collate(self, indices: Indices) -> EncoderBatch:
        """Some texts as tensors on the model's device."""
        epoch, first = divmod(int(indices[0]), len(self.train.lengths))
        return self.train.batch(indices - (int(indices[0]) - first), epoch).to(self.model.device)

    def loss(self, model: EncoderOnly, batch: EncoderBatch) -> tuple[Tensor, Tensor]:
        """The summed loss, with and without label smoothing."""
        return encoder_loss(model, batch, self.settings.label_smoothing)

    def validate(self) -> Validation:
        """The loss and the accuracy over all held-out texts; macro F1 too, where the answers are labels."""
        output, labelled = self.model.output_layer, self.model.config.head != "masked"

        def measure(indices: Indices) -> tuple[float, Tensor, Tensor, Tensor | None]:
            features_ND, labels_N = label_features(self.model, self.valid.batch(indices, 0).to(self.model.device))
            loss = output_cross_entropy(output, features_ND, labels_N, 0.0)[1]
            logits_NV = output(features_ND)
            log_probabilities_V = logits_NV.log_softmax(1).sum(0).cpu().double() if labelled else None
            return float(loss), labels_N, logits_NV.argmax(1), log_probabilities_V

        measured = side_by_side(measure, self.valid_batches, self.model.device)
        losses, labels, predictions, log_probabilities = zip(*measured, strict=True)
        wanted, found = torch.cat(labels).cpu().numpy(), torch.cat(predictions).cpu().numpy()
        loss, gain, wrong = sum(losses) / len(wanted), None, None
        scores = {"accuracy": accuracy(wanted, found)}
        if labelled:
            scores["macro F1"] = macro_f1(confusion_matrix(wanted, found, output.out_features))
            wrong = 1.0 - scores["accuracy"]
            gain = unrelated_loss(torch.stack(log_probabilities).sum(0).numpy(), wanted) - loss
        answers = summarise_answers(found.tolist(), wanted.tolist(), self.name)
        return Validation(loss, scores, wrong=wrong, answers=answers, input_gain=gain)

    def read_examples(self, model: EncoderOnly) -> Iterator[None]:
        """Let a model read a few held-out texts, one at a time; only the beginning of long ones."""
        for index in range(min(len(self.valid.lengths), EXAMPLES_TO_READ)):
            text = self.valid.batch(np.array([index]), 0).to(model.device)
            segments = None if text.segments_BT is None else text.segments_BT[:, :LONGEST_EXAMPLE]
            model.hidden(text.ids_BT[:, :LONGEST_EXAMPLE], text.lengths_B.clamp(max=LONGEST_EXAMPLE), segments)
            yield
