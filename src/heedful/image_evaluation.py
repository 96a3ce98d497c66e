"""How well a model classifies images whose classes are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.classification_metrics import accuracy, confusion_matrix, macro_f1
from heedful.data.images import decode_image
from heedful.data.labelled_images import LabelledImages
from heedful.errors import UserError
from heedful.pipelines.image_classifier import ImageClassifier


@dataclass(frozen=True)
class ImageEvaluation:
    """Scores of a test set; the matrix tells how often each class (row) was taken for each class (column)."""

    accuracy: float
    macro_f1: float
    confusion: NDArray[np.int64]
    images: int
    seconds: float


def evaluate_images(
    classifier: ImageClassifier,
    source: LabelledImages,
    resolution: int | tuple[int, int] | None,
    remark: Callable[[str, str], None],
) -> ImageEvaluation:
    """Classify images, and compare with their labels; `remark` is told of those that cannot be read."""
    numbers = {label: number for number, label in enumerate(classifier.labels)}
    unknown = sorted(set(source.labels) - numbers.keys())
    if unknown:
        raise UserError(f"the images have a class {unknown[0]!r}, which the model does not know")
    size, channels = classifier.size(resolution), classifier.model.config.channels
    right: list[int] = []

    def readable() -> Iterator[NDArray[np.uint8]]:
        for each in source:
            pixels = decode_image(each.image, size, channels)
            if isinstance(pixels, str):
                remark(each.name, pixels)
                continue
            right.append(numbers[source.labels[each.label]])
            yield pixels

    started = time.monotonic()
    predicted = [int(row.argmax()) for row in classifier.probabilities(readable())]
    if not predicted:
        raise UserError("none of the images can be read")
    seconds = time.monotonic() - started
    labels, predictions, count = np.array(right), np.array(predicted), len(classifier.labels)
    return ImageEvaluation(
        accuracy(labels, predictions),
        macro_f1(labels, predictions, count),
        confusion_matrix(labels, predictions, count),
        len(labels),
        seconds,
    )
