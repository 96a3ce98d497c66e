"""Learning to tell what an image shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.machine.devices import side_by_side
from heedful.models.vision import Vision, normalise
from heedful.prepared.batches import EvenBatches
from heedful.tasks.classification_metrics import accuracy, confusion_matrix, macro_f1
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.tasks.image_classification.augmentation import Augmentation, AugmentationConfig
from heedful.tasks.image_classification.data import ImageSet
from heedful.tasks.task import Indices, LearningSettings, Validation
from heedful.tasks.validation_signs import EXAMPLES_TO_READ, summarise_answers, unrelated_loss

# All attention weights of an image are in memory at once when a model reads it as an example.
MOST_PATCHES = 600


@dataclass(frozen=True)
class ImageBatch:
    """Normalised images (or videos) B C H W, their classes, and the number of tokens per image."""

    pixels: Tensor
    classes_B: Tensor
    length: int

    @property
    def num_targets(self) -> int:
        """Every image is a target."""
        return len(self.classes_B)

    @property
    def num_tokens(self) -> int:
        """All patches, and class tokens."""
        return len(self.classes_B) * self.length

    num_real = num_tokens

    def halves(self) -> list[ImageBatch]:
        """The batch in two parts, or unsplit if it is of one image."""
        if len(self.classes_B) == 1:
            return [self]
        parts = zip(self.pixels.chunk(2), self.classes_B.chunk(2), strict=True)
        return [ImageBatch(pixels, classes, self.length) for pixels, classes in parts]


class ImageTask:
    """Images with classes, the model that learns them, and its validation; `name` gives a class in words."""

    def __init__(
        self,
        model: Vision,
        data: ImageSet,
        augmentation: AugmentationConfig,
        settings: LearningSettings,
        name: Callable[[int], str],
    ) -> None:
        self.model, self.data, self.settings, self.name = model, data, settings, name
        self.augmentation = Augmentation(augmentation, settings.seed, model.config.channels)
        self.width, self.length = model.config.width, model.config.length
        self.images_per_batch = max(1, settings.tokens_per_batch // self.length)

    @property
    def head(self) -> nn.Linear:
        """The classifier."""
        assert isinstance(self.model.output, nn.Linear)
        return self.model.output

    @property
    def unit(self) -> str:
        """Images."""
        return "images"

    @property
    def validation_tokens(self) -> int:
        """Patches of the held-out images."""
        return len(self.data.valid) * self.length

    @property
    def largest_loss(self) -> float:
        """Four times the loss of a uniform guess, plus room for a bad start with few classes."""
        return 10.0 + 4.0 * math.log(self.head.out_features)

    def epoch_batches(self, epoch: int) -> Sequence[Indices]:
        """All training images in random order; each number also holds the epoch, which changes the augmentation."""
        train = self.data.train
        random = np.random.PCG64([self.settings.seed, epoch])
        order = np.argsort(random.random_raw(len(train)), kind="stable")
        keys = epoch * len(self.data.classes) + train[order]
        return EvenBatches(keys, self.images_per_batch)

    def collate(self, indices: Indices) -> ImageBatch:
        """Some training images, changed at random, as tensors on the model's device."""
        places = indices % len(self.data.classes)
        draws = self.augmentation.draw(indices)
        pixels = self.augmentation.move(torch.from_numpy(self.data.images[places]), draws)
        pixels = self.augmentation.erase(normalise(pixels, self.model.config.pixels), draws)
        return self._batch(pixels, places)

    def _batch(self, pixels: Tensor, places: Indices) -> ImageBatch:
        device = self.model.device
        return ImageBatch(pixels.to(device), torch.from_numpy(self.data.classes[places]).to(device), self.length)

    def loss(self, model: Vision, batch: ImageBatch) -> tuple[Tensor, Tensor]:
        """The summed loss, with and without label smoothing."""
        hidden_BD = model.hidden(batch.pixels)
        return output_cross_entropy(model.output, hidden_BD, batch.classes_B, self.settings.label_smoothing)

    def validate(self) -> Validation:
        """The loss, the accuracy and the F1 score over all held-out images, without augmentation."""
        valid = self.data.valid

        def measure(places: Indices) -> tuple[float, NDArray[np.int64], NDArray[np.float64]]:
            batch = self._held_out(places)
            hidden_BD = self.model.hidden(batch.pixels)
            logits_BV = self.head(hidden_BD)
            log_probabilities_V = logits_BV.log_softmax(1).sum(0).cpu().double().numpy()
            loss = output_cross_entropy(self.head, hidden_BD, batch.classes_B, 0.0)[1]
            return float(loss), logits_BV.argmax(1).cpu().numpy(), log_probabilities_V

        batches = np.split(valid, range(self.images_per_batch, len(valid), self.images_per_batch))
        measured = side_by_side(measure, batches, self.model.device)
        losses, predictions, log_probabilities = zip(*measured, strict=True)
        right, predicted = self.data.classes[valid], np.concatenate(predictions)
        loss = sum(losses) / len(valid)
        scores = {
            "accuracy": accuracy(right, predicted),
            "macro F1": macro_f1(confusion_matrix(right, predicted, self.head.out_features)),
        }
        answers = summarise_answers(predicted.tolist(), right.tolist(), self.name)
        gain = unrelated_loss(np.sum(log_probabilities, axis=0), right) - loss
        return Validation(loss, scores, wrong=1.0 - scores["accuracy"], answers=answers, input_gain=gain)

    def _held_out(self, places: Indices) -> ImageBatch:
        pixels = normalise(torch.from_numpy(self.data.images[places]), self.model.config.pixels)
        return self._batch(pixels, places)

    def read_examples(self, model: Vision) -> Iterator[None]:
        """Let a model read a few held-out images, one at a time, unless they have very many patches."""
        if self.length <= MOST_PATCHES:
            for place in self.data.valid[:EXAMPLES_TO_READ]:
                model.hidden(self._held_out(np.array([place])).pixels)
                yield
