"""A classifier of images, ready to use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from heedful.config import require_whole, shown
from heedful.errors import UserError
from heedful.inspection.attention.maps import AttentionMaps
from heedful.machine.torch_needed import needs_torch
from heedful.model_folder import LoadedModel
from heedful.settings.patch_grid import patch_grid
from heedful.tasks.classification import Classification
from heedful.tasks.given_texts import several
from heedful.tasks.image_classification.images import (
    LONGEST_RATIO,
    MOST_PIXELS,
    ImageInput,
    Scaling,
    as_array,
    load_image,
)
from heedful.tasks.image_classification.seam import ImageComputation, image_computation
from heedful.tasks.tracing import Traceable

if TYPE_CHECKING:
    from heedful.inspection.trace.trace import Trace
    from heedful.models.vision import Vision

SingleImage = str | Path | Image.Image | NDArray[Any]
EXPECTED = "a file name, an array, a tensor or an image of Pillow, or several in a list"
# Each patch attends to all; an image of 4096 x 4096 pixels in patches of 16 x 16 has this many.
MOST_PATCHES = 2**16


class ImageClassifier(Traceable):
    """A model that says what an image shows."""

    tracing = "heedful.tasks.image_classification.tracing:TRACING"

    def __init__(self, loaded: LoadedModel) -> None:
        self.model: Vision = loaded.network
        self.config = loaded.config
        self.name = loaded.name
        size, labels = self.model.config.image_size, self.config.labels
        if len(size) != 2 or len(labels) != self.model.config.num_classes:
            raise UserError("this model does not classify images: it has other axes, or no labels for its classes")
        if self.model.config.channels not in (1, 3):
            raise UserError(f"images have 1 or 3 channels, and the model takes {self.model.config.channels}")
        self.labels = labels

    @cached_property
    def computation(self) -> ImageComputation:
        """What computes with the model; made when it is first needed."""
        return image_computation(self.model)

    @overload
    def classify(  # type: ignore[overload-overlap]
        self, images: SingleImage, resolution: int | tuple[int, int] | None = None
    ) -> Classification: ...

    @overload
    def classify(
        self, images: Iterable[ImageInput], resolution: int | tuple[int, int] | None = None
    ) -> list[Classification]: ...

    def classify(
        self, images: SingleImage | Iterable[ImageInput], resolution: int | tuple[int, int] | None = None
    ) -> Classification | list[Classification]:
        """What one or several images show: file names, arrays or tensors H W or H W C of bytes, or Pillow images.

        An array N H W or N H W C holds several; 3 H W, which may also be one with its channels first, is refused.
        They are resized to the training size, or to `resolution`: height and width, or one number for both.
        """
        images = as_array(images)
        if _is_one(images):
            return next(self.stream([images], resolution))
        return list(self.stream(several(images, "images", EXPECTED), resolution))

    def stream(
        self, images: Iterable[ImageInput], resolution: int | tuple[int, int] | None = None
    ) -> Iterator[Classification]:
        """What images show, one by one; they are read as they are needed."""
        size = self.size(resolution)
        channels, scaling = self.model.config.channels, self.scaling(size)
        pixels = (load_image(image, size, channels, scaling) for image in images)
        for probabilities in self.probabilities(pixels):
            order = np.argsort(-probabilities, kind="stable")
            ranking = tuple((self.labels[number], float(probabilities[number])) for number in order)
            yield Classification(*ranking[0], ranking)

    @needs_torch("looking into attention")
    def attention(self, image: ImageInput, resolution: int | tuple[int, int] | None = None) -> AttentionMaps:
        """What the model attends to in an image, scaled as `classify` would scale it."""
        from heedful.tasks.image_classification.attention import image_attention

        size = self.size(resolution)
        return image_attention(self, load_image(image, size, self.model.config.channels, self.scaling(size)))

    @needs_torch("tracing a model")
    def trace(self, image: ImageInput, resolution: int | tuple[int, int] | None = None) -> Trace:
        """Every tensor that the model computes of an image, by name; it is scaled as `classify` would scale it."""
        from heedful.tasks.image_classification.tracing import image_trace

        size = self.size(resolution)
        return image_trace(self, load_image(image, size, self.model.config.channels, self.scaling(size)))

    def size(self, resolution: int | tuple[int, int] | None) -> tuple[int, int]:
        """The height and width that images are scaled to."""
        if resolution is None:
            height, width = self.model.config.image_size
            return height, width
        sides = resolution if isinstance(resolution, tuple | list) else (resolution, resolution)
        if len(sides) != 2:
            raise UserError(f"resolution is {shown(resolution)}, but must be a number of pixels, or height and width")
        height, width = sides
        for side in sides:
            require_whole(side, "resolution", 1, MOST_PIXELS)
        problem = None
        if height * width > MOST_PIXELS:
            problem = f"it has more than {MOST_PIXELS:,} pixels"
        elif max(sides) > LONGEST_RATIO * min(sides):
            problem = f"one side is more than {LONGEST_RATIO} times as long as the other"
        elif (patches := self.num_patches(sides)) > MOST_PATCHES:
            problem = f"an image would have {patches:,} patches, more than {MOST_PATCHES:,}"
        if problem:
            raise UserError(f"resolution is {height}x{width}: {problem}; choose a lower one")
        return height, width

    def scaling(self, size: tuple[int, int]) -> Scaling:
        """How images are scaled to that height and width."""
        own = self.model.config.scaling
        return Scaling(own.filter, own.at(size, self.model.config.image_size))

    def num_patches(self, size: Sequence[int]) -> int:
        """How many patches an image of that height and width has."""
        return math.prod(patch_grid(size, self.model.config.patch_size))

    def probabilities(self, images: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """The probabilities of all classes, image by image; images are bytes C H W, all of one size."""
        return self.computation.probabilities(images)


def _is_one(images: SingleImage | Iterable[ImageInput]) -> TypeGuard[SingleImage]:
    """Whether it is one image: an array H W, or H W C with 1, 3 or 4 channels, is one; N H W are several."""
    if isinstance(images, np.ndarray):
        if images.ndim == 3 and images.shape[0] == 3 and images.shape[2] not in (1, 3, 4):
            raise UserError(
                f"images are an array of the shape {images.shape}: if it is one image, move its channels to the end "
                "(images.transpose(1, 2, 0), and images.permute(1, 2, 0) for tensors); if it is three grey ones, give "
                "list(images)"
            )
        return images.ndim == 2 or (images.ndim == 3 and images.shape[2] in (1, 3, 4))
    return isinstance(images, str | Path | Image.Image)
