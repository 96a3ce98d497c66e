"""What a model attends to in an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.inspection.attention.maps import AttentionMaps, Positions
from heedful.inspection.attention.patch_image import PatchImage
from heedful.inspection.attention.predictions import predictions
from heedful.inspection.attention.recording import Recording, check_length, one_look
from heedful.models.vision import normalise
from heedful.tasks.engines import torch_network

if TYPE_CHECKING:
    from heedful.tasks.image_classification.pipeline import ImageClassifier


def image_attention(classifier: ImageClassifier, pixels_CHW: NDArray[np.uint8]) -> AttentionMaps:
    """The maps of all layers between the patches of an image, and what it shows."""
    model = torch_network(classifier)
    config = model.config
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
