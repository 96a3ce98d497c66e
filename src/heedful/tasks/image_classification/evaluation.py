"""How well a model classifies images whose classes are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError
from heedful.tasks.classification_metrics import LabelEvaluation, label_evaluation
from heedful.tasks.image_classification.files import LabelledImages
from heedful.tasks.image_classification.images import decode_image
from heedful.tasks.image_classification.pipeline import ImageClassifier


def evaluate_images(
    classifier: ImageClassifier,
    source: LabelledImages,
    resolution: int | tuple[int, int] | None,
    remark: Callable[[str, str], None],
) -> tuple[LabelEvaluation, float]:
    """The scores of images, and the seconds that they took; `remark` is told of those that cannot be read."""
    numbers = {label: number for number, label in enumerate(classifier.labels)}
    unknown = sorted(set(source.labels) - numbers.keys())
    if unknown:
        raise UserError(f"the images have a class {unknown[0]!r}, which the model does not know")
    size, channels = classifier.size(resolution), classifier.model.config.channels
    scaling = classifier.scaling(size)
    right: list[int] = []

    def readable() -> Iterator[NDArray[np.uint8]]:
        for each in source:
            pixels = decode_image(each.image, size, channels, scaling)
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
    return label_evaluation(np.array(right), np.array(predicted), classifier.labels), seconds
