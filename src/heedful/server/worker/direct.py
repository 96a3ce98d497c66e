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

from heedful.errors import UserError
from heedful.server.worker.direct_size import (
    check_weights,
    size_of_alternatives,
    size_of_attention,
    size_of_image,
    size_of_image_attention,
    size_of_text,
)
from heedful.server.worker.direct_work import work_of_a_turn, work_of_image, work_of_text, work_of_whole_text
from heedful.server.worker.task import remarks
from heedful.tasks.classification import Classification
from heedful.tasks.image_classification.images import or_reason, read_image

# From a pipeline, inputs and options to an answer for each input.
Compute = Callable[[Any, list[Any], dict[str, Any]], list[Any]]
# From a pipeline, an input and options to the bytes that it takes to compute.
Size = Callable[[Any, Any, dict[str, Any]], int]
# The same to the tokens that the work on it is worth.
Work = Callable[[Any, Any, dict[str, Any]], int]


@dataclass(frozen=True)
class DirectVerb:
    """How a verb is computed, whether inputs of several requests may be together, in how much memory and work."""

    compute: Compute
    together: bool = True
    size: Size = lambda pipeline, given, options: 0
    work: Work = lambda pipeline, given, options: 1


def _classify(pipeline: Any, texts: list[Any], options: dict[str, Any]) -> list[Any]:
    return [_classification(each) for each in pipeline.classify(texts)]


def _classify_images(pipeline: Any, images: list[str], options: dict[str, Any]) -> list[Any]:
    opened = [open_image(image) for image in images]
    return [_classification(each) for each in pipeline.classify(opened, _resolution(pipeline, options))]


def _resolution(pipeline: Any, options: dict[str, Any]) -> tuple[int, int] | None:
    """The height and width that images are made to, if not to those of the training."""
    given = options["resolution"]
    if given is None:
        return None
    size: tuple[int, int] = pipeline.size(tuple(given) if isinstance(given, list) else given)
    return size


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
    answers = []
    for text in inputs:
        with remarks() as found:
            maps = pipeline.attention(text, **options)
        answers.append(_document(maps, [f"the text {remark}" for _, remark in found]))
    return answers


def _attention_of_images(pipeline: Any, images: list[str], options: dict[str, Any]) -> list[bytes]:
    resolution = _resolution(pipeline, options)
    return [_document(pipeline.attention(open_image(image), resolution), []) for image in images]


def _document(maps: Any, found: list[str]) -> bytes:
    """The answer as bytes: it is large, and the front process has no need to know what it holds."""
    # Those of a translation that was not given are known only now.
    check_weights(sum(each.weights.size for each in maps.maps))
    return json.dumps({**maps.to_json(), "remarks": found}).encode()


DIRECT_VERBS = {
    "classify": DirectVerb(_classify, True, size_of_text, work_of_text),
    "classify_images": DirectVerb(_classify_images, False, size_of_image, work_of_image),
    "tag": DirectVerb(_tag, True, size_of_text, work_of_whole_text),
    "fill": DirectVerb(_fill, False, size_of_text, work_of_a_turn),
    "embed": DirectVerb(_embed, True, size_of_text, work_of_text),
    "alternatives": DirectVerb(_alternatives, False, size_of_alternatives, work_of_a_turn),
    "attention": DirectVerb(_attention, False, size_of_attention, work_of_a_turn),
    "attention_of_images": DirectVerb(_attention_of_images, False, size_of_image_attention, work_of_a_turn),
}


def open_image(encoded: str) -> Image.Image:
    """An image that came as base64, perhaps as a data: URL; nothing in it is taken for a path."""
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
