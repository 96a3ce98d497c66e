"""From a grid of pixels to tokens: an image, a video or another grid is cut into patches, each of which is a token."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.settings.patch_grid import patch_grid


def cut_patches(pixels: Tensor, patch_size: Sequence[int], window: Sequence[int] | None = None) -> Tensor:
    """B C and the grid's axes -> B P (C times a window's pixels); incomplete patches are padded with zeros.

    The windows are the patches themselves, or larger ones with the patches in their middle: these overlap, and at the
    edges of the grid the last pixels are repeated.
    """
    window = window or patch_size
    lengths, axes = pixels.shape[2:], range(2, pixels.dim())
    places = zip(patch_grid(lengths, patch_size), patch_size, lengths, strict=True)
    missing = [count * patch - length for count, patch, length in places]
    if any(missing):
        pixels = F.pad(pixels, [pad for each in reversed(missing) for pad in (0, each)])
    beyond = [size - patch for size, patch in zip(window, patch_size, strict=True)]
    if any(beyond):
        pads = [pad for each in reversed(beyond) for pad in (each // 2, each - each // 2)]
        pixels = F.pad(pixels, pads, mode="replicate")
    for axis, size, patch in zip(axes, window, patch_size, strict=True):
        pixels = pixels.unfold(axis, size, patch)
    inside = range(pixels.dim() - len(axes), pixels.dim())
    return pixels.permute(0, *axes, 1, *inside).flatten(len(axes) + 1).flatten(1, -2)


def resize_windows(weights: Tensor, window: Sequence[int], larger: Sequence[int]) -> Tensor:
    """Weights D (C times a window's pixels) for larger windows: they do to a larger window what the old ones do to its
    pixels averaged down to the old size."""
    weights = weights.unflatten(1, (-1, *window))
    for axis, (old, new) in enumerate(zip(window, larger, strict=True), 2):
        edges = torch.arange(old + 1) * (new / old)
        starts, places = edges[:-1, None], torch.arange(new)
        covered = (torch.minimum(edges[1:, None], places + 1) - torch.maximum(starts, places)).clamp(min=0)
        weights = (weights.movedim(axis, -1) @ (covered * old / new).to(weights)).movedim(-1, axis)
    return weights.flatten(1)


class PatchEmbedding(nn.Module):
    """A linear projection of each patch, or of a window around it: a convolution whose stride is the patches' size."""

    def __init__(
        self, patch_size: Sequence[int], channels: int, width: int, window: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        self.patch_size, self.window = tuple(patch_size), tuple(window or patch_size)
        self.projection = nn.Linear(channels * math.prod(self.window), width)

    def forward(self, pixels: Tensor, window: Sequence[int] | None = None) -> Tensor:
        """B C and the grid's axes, such as B C H W, or B C F H W for a video -> B P D; also with other windows."""
        window = window or self.window
        patches_BPC = cut_patches(pixels, self.patch_size, window)
        if window == self.window:
            return self.projection(patches_BPC)
        return F.linear(patches_BPC, resize_windows(self.projection.weight, self.window, window), self.projection.bias)
