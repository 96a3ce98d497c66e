"""The settings of a vision model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from heedful.config import require
from heedful.errors import UserError
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.patch_grid import patch_grid
from heedful.settings.stack import StackConfig


@dataclass(frozen=True)
class PixelConfig:
    """What pixels, from 0 to 1, are normalised with: one number for each channel, or one for all."""

    mean: tuple[float, ...] = (0.5,)
    deviation: tuple[float, ...] = (0.5,)

    def __post_init__(self) -> None:
        if not self.mean or not self.deviation or not min(self.deviation) > 0:
            raise UserError("pixels.mean and pixels.deviation need a number for each channel, the latter above 0")


ScalingFilter = Literal["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]


@dataclass(frozen=True)
class ScalingConfig:
    """How images are brought to the size that the model takes.

    With `before_cut`, a height and width or only the length of the shorter side, they are first scaled to that, and
    then their middle is cut out.
    """

    filter: ScalingFilter = "bilinear"
    before_cut: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.before_cut is not None and len(self.before_cut) not in (1, 2):
            raise UserError(f"before_cut is {list(self.before_cut)}: give a height and a width, or the shorter side")
        require(min(self.before_cut or (1,)), "before_cut", 1)

    def at(self, size: tuple[int, int], trained: Sequence[int]) -> tuple[int, ...] | None:
        """The size that images are scaled to before `size` is cut out: in proportion to the size in training."""
        if self.before_cut is None:
            return None
        if len(self.before_cut) == 1:
            larger = self.before_cut[0] / max(trained)
            return (max(*size, round(max(size) * larger)),)
        sides = zip(self.before_cut, size, trained, strict=True)
        return tuple(max(own, round(side * own / of)) for side, own, of in sides)


@dataclass(frozen=True)
class VisionConfig:
    """The settings of a vision model; sizes are (height, width), or (frames, height, width) for a video.

    With a `convolution` over that many patches along each axis before the first block, edges and textures are learned
    from fewer images. Such a model keeps its sense of scale on a finer grid: what a patch sees, and how far its
    neighbours are, remains the same share of the image as on the `convolution_grid` (or else on the grid of its own
    images). The number of classes is that of the data; without one, the model gives what its head would be applied to.
    """

    image_size: tuple[int, ...] = (32, 32)
    patch_size: tuple[int, ...] = (4, 4)
    channels: int = 3
    num_classes: int | None = None
    width: int = 96
    pooling: Literal["class_token", "mean"] = "class_token"
    pixels: PixelConfig = field(default_factory=PixelConfig)
    scaling: ScalingConfig = field(default_factory=ScalingConfig)
    stack: StackConfig = field(
        default_factory=lambda: StackConfig(
            norm="pre", feed_forward=FeedForwardConfig(activation="gelu"), norm_epsilon=1e-6
        )
    )
    convolution: int = 0
    convolution_grid: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.image_size or len(self.image_size) != len(self.patch_size):
            raise UserError(
                f"image_size is {list(self.image_size)} and patch_size is {list(self.patch_size)}: "
                "both need a number for each axis, as in [224, 224] and [16, 16]"
            )
        for name in ("image_size", "patch_size"):
            require(min(getattr(self, name)), name, 1)
        require(self.channels, "channels", 1)
        require(1 if self.num_classes is None else self.num_classes, "num_classes", 1)
        require(self.width, "width", 1)
        require(self.convolution, "convolution", 0)
        if self.convolution and self.convolution % 2 == 0:
            raise UserError(f"convolution is {self.convolution}, but must be odd: a patch and its neighbours, or 0")
        if self.convolution_grid and len(self.convolution_grid) != len(self.patch_size):
            raise UserError(f"convolution_grid is {list(self.convolution_grid)}: it needs a number for each axis")
        require(min(self.convolution_grid or (1,)), "convolution_grid", 1)
        if {len(self.pixels.mean), len(self.pixels.deviation)} - {1, self.channels}:
            raise UserError(f"pixels.mean and pixels.deviation need one number, or {self.channels}, as channels says")

    @property
    def grid(self) -> tuple[int, ...]:
        """Patches along each axis."""
        return patch_grid(self.image_size, self.patch_size)

    @property
    def length(self) -> int:
        """Tokens of an image."""
        return math.prod(self.grid) + (self.pooling == "class_token")

    def finer(self, grid: Sequence[int]) -> tuple[float, ...]:
        """How many times finer along each axis a grid is than the one on which patches touch; at least 1."""
        touching = (self.convolution_grid or self.grid) if self.convolution else grid
        return tuple(max(1.0, own / base) for own, base in zip(grid, touching, strict=True))

    def window(self, grid: Sequence[int]) -> tuple[int, ...]:
        """How many pixels along each axis a patch of a grid sees: its own, and on a finer grid some around it too."""
        return tuple(round(patch * finer) for patch, finer in zip(self.patch_size, self.finer(grid), strict=True))

    def summary(self) -> str:
        """The settings that matter most, in words."""
        size, patch = ("x".join(map(str, each)) for each in (self.image_size, self.patch_size))
        layers = f"{self.stack.num_layers} layers, width {self.width}, {self.stack.summary()}"
        return f"{layers}, images {size}x{self.channels}, patches {patch}, {self.pooling.replace('_', ' ')}"

    def activation_bytes(self) -> int:
        """Bytes that one token needs in training."""
        pixels = self.channels * math.prod(self.window(self.grid))
        windows = self.convolution ** len(self.patch_size) if self.convolution else 0
        return self.stack.activation_bytes(self.width, self.length, 1) + 4 * (2 * pixels + (4 + windows) * self.width)
