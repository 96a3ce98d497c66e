"""What a classifier of images computes for clients."""

from __future__ import annotations

import base64
import binascii
import io
import json
from typing import Any

from PIL import Image

from heedful.errors import UserError
from heedful.tasks.classification import label_document
from heedful.tasks.declaration import Options
from heedful.tasks.direct_cost import (
    size_of_image,
    size_of_image_attention,
    size_of_image_explanation,
    work_of_a_turn,
    work_of_image,
)
from heedful.tasks.direct_verb import DirectVerb, attention_document, explained_with
from heedful.tasks.image_classification.images import or_reason, read_image


def _classify(pipeline: Any, images: list[str], options: Options) -> list[Any]:
    opened = [open_image(image) for image in images]
    return [label_document(each) for each in pipeline.classify(opened, _resolution(pipeline, options))]


def _attention(pipeline: Any, images: list[str], options: Options) -> list[bytes]:
    resolution = _resolution(pipeline, options)
    return [attention_document(pipeline.attention(open_image(image), resolution), []) for image in images]


def _explain(pipeline: Any, images: list[str], options: Options) -> list[bytes]:
    resolution, switches = _resolution(pipeline, options), options["switches"]
    pages = [explained_with(pipeline, open_image(image), switches, resolution=resolution) for image in images]
    return [json.dumps({**page, "remarks": []}).encode() for page in pages]


def _resolution(pipeline: Any, options: Options) -> tuple[int, int] | None:
    """The height and width that images are scaled to, if not those of the training."""
    given = options["resolution"]
    if given is None:
        return None
    size: tuple[int, int] = pipeline.size(tuple(given) if isinstance(given, list) else given)
    return size


def open_image(encoded: str) -> Image.Image:
    """An image that came as base64, perhaps as a data: URL; nothing in it is treated as a path."""
    if encoded.startswith("data:"):
        encoded = encoded.partition(",")[2]
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise UserError("the image is not valid base64") from None
    image = or_reason(lambda: read_image(io.BytesIO(content)))
    if isinstance(image, str):
        raise UserError(f"the image cannot be read: {image}")
    return image


CLASSIFY_IMAGES = DirectVerb(_classify, False, size_of_image, work_of_image)
ATTENTION_OF_IMAGES = DirectVerb(_attention, False, size_of_image_attention, work_of_a_turn)
EXPLAIN_IMAGES = DirectVerb(_explain, False, size_of_image_explanation, work_of_a_turn)
