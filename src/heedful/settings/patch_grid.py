"""How many patches an image, a video or another grid of pixels is cut into."""

from __future__ import annotations

from collections.abc import Sequence


def patch_grid(size: Sequence[int], patch_size: Sequence[int]) -> tuple[int, ...]:
    """The number of patches along each axis; a partial one at the end counts."""
    return tuple(-(-length // patch) for length, patch in zip(size, patch_size, strict=True))
