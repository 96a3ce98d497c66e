"""From a grid of pixels to tokens: an image, a video or another grid is cut into patches, each of which is a token."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn


def patch_grid(size: Sequence[int], patch_size: Sequence[int]) -> tuple[int, ...]:
    """The number of patches along each axis; a last one that is cut off counts."""
    return tuple(-(-length // patch) for length, patch in zip(size, patch_size, strict=True))


def cut_patches(pixels: Tensor, patch_size: Sequence[int]) -> Tensor:
    """B C and the grid's axes -> B P (C times a patch's pixels); what lacks to whole patches is padded with zeros."""
    B, channels, *size = pixels.shape
    grid = patch_grid(size, patch_size)
    missing = [count * patch - length for count, patch, length in zip(grid, patch_size, size, strict=True)]
    if any(missing):
        pixels = F.pad(pixels, [pad for each in reversed(missing) for pad in (0, each)])
    # B C (rows of patches, rows of a patch) (columns of patches, columns of a patch) ...
    split = pixels.reshape(B, channels, *(length for pair in zip(grid, patch_size, strict=True) for length in pair))
    places, inside = range(2, split.dim(), 2), range(3, split.dim(), 2)
    return split.permute(0, *places, 1, *inside).reshape(B, math.prod(grid), channels * math.prod(patch_size))


class PatchEmbedding(nn.Module):
    """A linear projection of each patch, which is a convolution whose stride is its size."""

    def __init__(self, patch_size: Sequence[int], channels: int, width: int) -> None:
        super().__init__()
        self.patch_size = tuple(patch_size)
        self.projection = nn.Linear(channels * math.prod(patch_size), width)

    def forward(self, pixels: Tensor) -> Tensor:
        """B C and the grid's axes, such as B C H W, or B C F H W of a video -> B P D."""
        return self.projection(cut_patches(pixels, self.patch_size))
