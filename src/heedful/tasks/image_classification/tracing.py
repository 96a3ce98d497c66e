"""Every tensor that a model computes of an image, and computing one image at a time with a patched model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.errors import not_numbers
from heedful.inspection.attention.maps import Positions
from heedful.inspection.attention.recording import check_length
from heedful.inspection.trace.trace import Trace, recorded
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.models.vision import normalise
from heedful.settings.patch_grid import patch_grid
from heedful.tasks.patched_network import PatchedNetwork, Tracing, patches_of
from heedful.tasks.tracing import traced_network

if TYPE_CHECKING:
    from heedful.tasks.image_classification.pipeline import ImageClassifier


def image_trace(classifier: ImageClassifier, pixels_CHW: NDArray[np.uint8]) -> Trace:
    """All tensors of an image, from its patches to its classes."""
    network = traced_network(classifier)
    config = network.config
    rows, columns = patch_grid(pixels_CHW.shape[1:], config.patch_size)
    positions = Positions.on_a_grid(rows, columns, config.pooling == "class_token")
    check_length(len(positions.labels), None, "image", "look at it at a lower resolution")
    pixels = normalise(torch.tensor(pixels_CHW)[None].to(network.device), config.pixels)
    points, tensors = recorded(network, patches_of(classifier), lambda view: view(pixels))
    return Trace(classifier.name, classifier.config.family, {"text": positions.labels}, points, tensors)


class WholeImages:
    """Computes images one at a time."""

    def __init__(self, network: PatchedNetwork) -> None:
        self.network: Any = network

    def probabilities(self, images: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """The probabilities of all classes, image by image."""
        for image in images:
            pixels = torch.tensor(image)[None].to(self.network.device)
            with one_thread(), flushed_denormals(), torch.no_grad():
                logits_1V = self.network(normalise(pixels, self.network.config.pixels))
            if not bool(logits_1V.isfinite().all()):
                raise not_numbers("answers")
            yield logits_1V.softmax(-1)[0].cpu().numpy()


TRACING = Tracing(WholeImages)
