"""Random changes of training images that leave their classes as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.config import require
from heedful.splitmix import GOLDEN_GAMMA, mix


@dataclass(frozen=True)
class AugmentationConfig:
    """How far images are shifted (a share of their size; the edge is repeated), whether half of them are flipped
    left to right, and the probability that a rectangle of an image is erased.

    If `flip` is not given, colour images are flipped, and grey ones, which often show writing, are not.
    """

    shift: float = 0.125
    flip: bool | None = None
    erase: float = 0.0

    def __post_init__(self) -> None:
        require(self.shift, "shift", 0, 1)
        require(self.erase, "erase", 0, 1)

    def flips(self, channels: int) -> bool:
        """Whether images of this many channels are flipped."""
        return channels > 1 if self.flip is None else self.flip


# Random numbers for the changes of one image: two shifts, a flip, an erasure and its rectangle.
_DRAWS = 8


def uniform_numbers(seed: int, keys: NDArray[np.integer], count: int) -> NDArray[np.float64]:
    """`count` numbers from [0, 1) for each key, which depend only on the seed and the key (SplitMix64)."""
    places: Any = keys.astype(np.uint64)[:, None] * np.uint64(count) + np.arange(count, dtype=np.uint64)
    mixed = mix(places * GOLDEN_GAMMA + np.uint64((seed + 1) * 0xD1B54A32D192ED03 % 2**64))
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


class Augmentation:
    """Changes images by numbers drawn for each of them."""

    def __init__(self, config: AugmentationConfig, seed: int, channels: int) -> None:
        self.config, self.seed = config, seed
        self.flips = config.flips(channels)

    def draw(self, keys: NDArray[np.integer]) -> Tensor:
        """The numbers of some images, each of which has its own key in each epoch."""
        return torch.from_numpy(uniform_numbers(self.seed, keys, _DRAWS)).float()

    def move(self, pixels: Tensor, draws: Tensor) -> Tensor:
        """Shift and flip bytes B C ... H W, all frames of a video in the same way."""
        height, width = pixels.shape[-2:]
        rows_BH = self._shifted(height, draws[:, 0])
        columns_BW = self._shifted(width, draws[:, 1])
        if self.flips:
            columns_BW = torch.where(draws[:, 2:3] < 0.5, columns_BW.flip(1), columns_BW)
        between = [1] * (pixels.dim() - 3)
        pixels = pixels.take_along_dim(rows_BH.view(len(pixels), *between, height, 1), -2)
        return pixels.take_along_dim(columns_BW.view(len(pixels), *between, 1, width), -1)

    def _shifted(self, length: int, draws_B: Tensor) -> Tensor:
        most = int(self.config.shift * length)
        offsets_B1 = (draws_B * (2 * most + 1)).long()[:, None] - most
        return (torch.arange(length) + offsets_B1).clamp(0, length - 1)

    def erase(self, pixels: Tensor, draws: Tensor) -> Tensor:
        """In some normalised images, set a rectangle, of a fifth to a half of height and width, to the mean."""
        if not self.config.erase:
            return pixels
        inside = []
        for length, size, place in ((pixels.shape[-2], 4, 5), (pixels.shape[-1], 6, 7)):
            extent = (0.2 + 0.3 * draws[:, size]) * length
            first = draws[:, place] * (length - extent)
            places = torch.arange(length) + 0.5
            inside.append((places >= first[:, None]) & (places < (first + extent)[:, None]))
        hit_BHW = inside[0][:, :, None] & inside[1][:, None] & (draws[:, 3] < self.config.erase)[:, None, None]
        shape = (len(pixels), *[1] * (pixels.dim() - 3), *hit_BHW.shape[1:])
        return pixels.masked_fill(hit_BHW.view(shape), 0.0)
