"""A classifier of images, ready to use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import overload

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image

from heedful.errors import UserError, not_numbers
from heedful.inspection.attention.maps import AttentionMaps, Positions
from heedful.inspection.attention.patch_image import PatchImage
from heedful.inspection.attention.predictions import predictions
from heedful.inspection.attention.recording import Recording, check_length, one_look
from heedful.layers.kv_cache import with_enough_rows
from heedful.machine.devices import side_by_side
from heedful.model_folder import LoadedModel
from heedful.models.vision import Vision, normalise
from heedful.settings.patch_grid import patch_grid
from heedful.tasks.classification import Classification
from heedful.tasks.described import Described
from heedful.tasks.image_classification.images import ImageInput, Scaling, load_image

SingleImage = str | Path | Image.Image

# Patches that are computed at a time.
TOKENS_PER_BATCH = 8192
# With fewer images, torch's CPU kernels give other last bits (see docs/architecture.md).
FEWEST_IMAGES = 4


class ImageClassifier(Described):
    """A model that tells what an image shows."""

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
        """What images show, or one image, which are file names, arrays H W or H W C of bytes, or images of Pillow.

        They are made as large as those of the training, or as `resolution`: height and width, or one for both.
        """
        if isinstance(images, SingleImage):
            return next(self.stream([images], resolution))
        return list(self.stream(images, resolution))

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

    def attention(self, image: ImageInput, resolution: int | tuple[int, int] | None = None) -> AttentionMaps:
        """What the model attends to in an image, made as large as `classify` would make it."""
        size = self.size(resolution)
        return image_attention(self, load_image(image, size, self.model.config.channels, self.scaling(size)))

    def size(self, resolution: int | tuple[int, int] | None) -> tuple[int, int]:
        """The height and width that images are made to."""
        if resolution is None:
            height, width = self.model.config.image_size
        else:
            height, width = resolution if isinstance(resolution, tuple) else (resolution, resolution)
        if min(height, width) < 1:
            raise UserError(f"resolution is {height}x{width}, but must be at least 1")
        return height, width

    def scaling(self, size: tuple[int, int]) -> Scaling:
        """How images are made to that height and width."""
        own = self.model.config.scaling
        return Scaling(own.filter, own.at(size, self.model.config.image_size))

    def num_patches(self, size: Sequence[int]) -> int:
        """How many patches an image of that height and width has."""
        return math.prod(patch_grid(size, self.model.config.patch_size))

    def probabilities(self, images: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """The probabilities of all classes, image by image; images are bytes C H W, all of one size."""
        for found in side_by_side(self._compute, self._batches(images), self.model.device):
            yield from found

    def _batches(self, images: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
        waiting = iter(images)
        for first in waiting:
            rows = max(FEWEST_IMAGES, TOKENS_PER_BATCH // self.num_patches(first.shape[1:]))
            yield np.stack([first, *islice(waiting, rows - 1)])

    def _compute(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        count = len(images)
        pixels = F.pad(torch.from_numpy(images), [0] * 7 + [max(0, FEWEST_IMAGES - count)])
        hidden_BD = self.model.hidden(normalise(pixels.to(self.model.device), self.model.config.pixels))
        logits_BV = self.model.output(with_enough_rows(hidden_BD))
        if not bool(logits_BV[:count].isfinite().all()):
            raise not_numbers("answers")
        probabilities_BV: NDArray[np.float32] = logits_BV[:count].softmax(-1).cpu().numpy()
        return probabilities_BV


def image_attention(classifier: ImageClassifier, pixels_CHW: NDArray[np.uint8]) -> AttentionMaps:
    """The maps of all layers between the patches of an image, and what it shows."""
    model, config = classifier.model, classifier.model.config
    height, width = config.patch_size
    image = PatchImage(pixels_CHW, (height, width), config.pooling == "class_token")
    positions = Positions.on_a_grid(*image.grid, image.class_token)
    check_length(len(positions.labels), None, "image", "look at it at a lower resolution")
    recording = Recording(model)
    with one_look():
        pixels = normalise(torch.tensor(pixels_CHW)[None].to(model.device), config.pixels)
        logits_1V = recording.view(pixels)
    maps = recording.maps("image", "self", "image", "image")
    outputs = predictions(logits_1V, [None], classifier.labels.__getitem__, [None])
    return AttentionMaps(classifier.name, classifier.config.family, {"image": positions}, maps, outputs, image)
