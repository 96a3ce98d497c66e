"""How well a model classifies images whose classes are known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError
from heedful.tasks.classification_metrics import LabelEvaluation, label_evaluation
from heedful.tasks.computing import Computing
from heedful.tasks.declaration import Measured, Options, Remark
from heedful.tasks.image_classification.files import LabelledImages, open_images
from heedful.tasks.image_classification.images import decode_image, parse_resolution
from heedful.tasks.image_classification.pipeline import ImageClassifier
from heedful.tasks.label_tables import label_lines
from heedful.tasks.loading import load_with
from heedful.tasks.unknown_labels import LabelNumbers, unknown_line


def evaluate_images(
    classifier: ImageClassifier,
    source: LabelledImages,
    resolution: int | tuple[int, int] | None,
    remark: Callable[[str, str], None],
) -> tuple[LabelEvaluation, float]:
    """The scores of images, and the seconds they took; `remark` receives those that cannot be read."""
    numbers = LabelNumbers(classifier.labels)
    size, channels = classifier.size(resolution), classifier.model.config.channels
    scaling = classifier.scaling(size)
    right: list[int] = []

    def readable() -> Iterator[NDArray[np.uint8]]:
        for each in source:
            pixels = decode_image(each.image, size, channels, scaling)
            if isinstance(pixels, str):
                remark(each.name, pixels)
                continue
            right.append(numbers.number(source.labels[each.label], each.name))
            yield pixels

    started = time.monotonic()
    predicted = [int(row.argmax()) for row in classifier.probabilities(readable())]
    if not predicted:
        raise UserError("none of the images can be read")
    seconds = time.monotonic() - started
    numbers.check()
    result = label_evaluation(np.array(right), np.array(predicted), numbers.names)
    return replace(result, unknown=numbers.unknown), seconds


def evaluate(model: str, options: Options, remark: Remark) -> Measured:
    """Measure a classifier of images as the command line asks."""
    source = open_images(options["images"], options["idx_images"], options["idx_labels"])
    if source is None:
        raise UserError(f"{model} is an image classifier: give --images, or --idx-images and --idx-labels")
    resolution = parse_resolution(options["resolution"])
    pipeline = load_with(model, Computing(options["device"], options["engine"], options["precision"]))
    assert isinstance(pipeline, ImageClassifier)
    result, seconds = evaluate_images(
        pipeline, source, resolution, lambda name, reason: remark(f"{name} is left out: {reason}")
    )
    if result.unknown:
        remark(unknown_line(result.unknown, result.count))
    return {**asdict(result), "seconds": seconds}, [
        f"accuracy  {result.accuracy:.4f}  of {result.count:,} images",
        f"macro F1  {result.macro_f1:.4f}",
        f"speed     {result.count / seconds:,.0f} images/s",
        *label_lines(result),
    ]
