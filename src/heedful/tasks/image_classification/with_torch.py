"""What torch computes for a classifier of images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from heedful.errors import not_numbers
from heedful.layers.kv_cache import with_enough_rows
from heedful.machine.devices import side_by_side
from heedful.models.evaluation_mode import evaluation_mode
from heedful.models.vision import Vision, normalise
from heedful.settings.patch_grid import patch_grid

# How many patches are computed at a time.
TOKENS_PER_BATCH = 8192
# With fewer images, torch's CPU kernels give other last bits (see docs/architecture.md).
FEWEST_IMAGES = 4


class TorchImages:
    """Computes images in batches, on all cores."""

    def __init__(self, model: Vision) -> None:
        self.model = model

    def probabilities(self, images: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """The probabilities of all classes, image by image."""
        with evaluation_mode(self.model):
            for found in side_by_side(self._compute, self._batches(images), self.model.device):
                yield from found

    def _batches(self, images: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
        waiting = iter(images)
        for first in waiting:
            patches = math.prod(patch_grid(first.shape[1:], self.model.config.patch_size))
            rows = max(FEWEST_IMAGES, TOKENS_PER_BATCH // patches)
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
