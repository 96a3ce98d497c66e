"""An image as a model saw it, cut into patches."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PatchImage:
    """Pixels C H W, the height and width of a patch, and whether a class token comes before the patches.

    A last row or column of patches may reach beyond the image.
    """

    pixels: NDArray[np.uint8]
    patch: tuple[int, int]
    class_token: bool

    def __repr__(self) -> str:
        height, width = self.pixels.shape[1:]
        return f"PatchImage({height}x{width}, patches of {self.patch[0]}x{self.patch[1]})"

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        _, height, width = self.pixels.shape
        return -(-height // self.patch[0]), -(-width // self.patch[1])

    def to_json(self) -> dict[str, Any]:
        """The image as a data URL, with its grid of patches."""
        from PIL import Image  # imported here, so that maps of texts do not wait for it

        pixels_HWC = self.pixels.transpose(1, 2, 0)
        image = Image.fromarray(pixels_HWC[..., 0] if pixels_HWC.shape[2] == 1 else pixels_HWC)
        file = io.BytesIO()
        image.save(file, "PNG")
        return {
            "data": "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii"),
            "grid": list(self.grid),
            "extra": int(self.class_token),
            "size": list(self.pixels.shape[1:]),
            "patch": list(self.patch),
        }
