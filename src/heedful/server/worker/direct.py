"""What is computed in one go, between two decoding steps; texts of several requests together where that helps."""

from __future__ import annotations

import base64
import binascii
import io
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from PIL import Image

from heedful.data.images import read_image
from heedful.errors import UserError
from heedful.pipelines.classification import Classification

# From a pipeline, inputs and options to an answer for each input.
Compute = Callable[[Any, list[Any], dict[str, Any]], list[Any]]
# Pixels of an image: a small file may unpack to a huge one.
MOST_PIXELS = 2**25


@dataclass(frozen=True)
class DirectVerb:
    """How a verb is computed, and whether inputs of several requests may be computed together."""

    compute: Compute
    together: bool = True


def _classify(pipeline: Any, texts: list[Any], options: dict[str, Any]) -> list[Any]:
    return [_classification(each) for each in pipeline.classify(texts)]


def _classify_images(pipeline: Any, images: list[str], options: dict[str, Any]) -> list[Any]:
    resolution = options["resolution"]
    opened = [open_image(image) for image in images]
    found = pipeline.classify(opened, tuple(resolution) if isinstance(resolution, list) else resolution)
    return [_classification(each) for each in found]


def _classification(result: Classification) -> dict[str, Any]:
    return {"label": result.label or None, "probabilities": dict(result.ranking)}


def _tag(pipeline: Any, texts: list[str], options: dict[str, Any]) -> list[Any]:
    return [{"words": [asdict(word) for word in words]} for words in pipeline.tag(texts)]


def _fill(pipeline: Any, texts: list[str], options: dict[str, Any]) -> list[Any]:
    return [{"masks": [[asdict(each) for each in group] for group in pipeline.fill(text, **options)]} for text in texts]


def _embed(pipeline: Any, texts: list[Any], options: dict[str, Any]) -> list[Any]:
    vectors = pipeline.embed(texts, **options)
    return [
        (row.astype("<f4").tobytes(), len(pipeline.tokenizer.encode(text)))
        for row, text in zip(vectors, texts, strict=True)
    ]


def _alternatives(pipeline: Any, texts: list[str], options: dict[str, Any]) -> list[Any]:
    return [[asdict(each) for each in pipeline.alternatives(text, **options)] for text in texts]


def _attention(pipeline: Any, inputs: list[str], options: dict[str, Any]) -> list[bytes]:
    # As bytes: these are large, and the front process has no need to know what they hold.
    return [json.dumps(pipeline.attention(text, **options).to_json()).encode() for text in inputs]


def _attention_of_images(pipeline: Any, images: list[str], options: dict[str, Any]) -> list[bytes]:
    return [json.dumps(pipeline.attention(open_image(image)).to_json()).encode() for image in images]


DIRECT_VERBS = {
    "classify": DirectVerb(_classify),
    "classify_images": DirectVerb(_classify_images, together=False),
    "tag": DirectVerb(_tag),
    "fill": DirectVerb(_fill, together=False),
    "embed": DirectVerb(_embed),
    "alternatives": DirectVerb(_alternatives, together=False),
    "attention": DirectVerb(_attention, together=False),
    "attention_of_images": DirectVerb(_attention_of_images, together=False),
}


def open_image(encoded: str) -> Image.Image:
    """An image that came as base64, perhaps as a data: URL; nothing in it is taken for a path."""
    if encoded.startswith("data:"):
        encoded = encoded.partition(",")[2]
    try:
        image = read_image(Image.open(io.BytesIO(base64.b64decode(encoded, validate=True))))
    except (binascii.Error, ValueError):
        raise UserError("the image is not valid base64") from None
    except Exception as error:  # Pillow's readers of broken files raise exceptions of all kinds
        raise UserError(f"the image cannot be read: {type(error).__name__}") from None
    if image.width * image.height > MOST_PIXELS:
        raise UserError(
            f"the image has {image.width} x {image.height} pixels, more than {MOST_PIXELS:,}: scale it down"
        )
    return image
