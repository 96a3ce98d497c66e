"""What all position schemes have in common: the three hooks by which a model uses them."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from heedful.settings.position_scheme import PositionConfig, PositionSizes


class PositionScheme(nn.Module):
    """No positions at all, and the interface of all schemes.

    A scheme overrides one or more of three hooks: `add`, `rotate` and `bias`.
    """

    # Whether sequences may be longer than `length`; the scheme then grows as needed.
    extends: ClassVar[bool] = True

    def __init__(self, sizes: PositionSizes, config: PositionConfig | None = None) -> None:
        super().__init__()
        self.sizes = sizes
        self.length = sizes.length

    @classmethod
    def uses(cls, hook: Literal["add", "rotate", "bias"]) -> bool:
        """Whether the scheme does anything in one of its hooks."""
        return getattr(cls, hook) is not getattr(PositionScheme, hook)

    def add(self, x_BTD: Tensor, positions: Tensor) -> Tensor:
        """The embeddings plus what the scheme adds to them; positions are T, or B 1 in a decoding step."""
        return x_BTD

    def rotate(self, x_BHTK: Tensor, positions: Tensor) -> Tensor:
        """The queries or keys as the scheme rotates them."""
        return x_BHTK

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor | None:
        """What is added to the scores of self-attention, H T S, or B H T S where positions differ between rows.

        Query positions are T or B T, and key positions S or B S; None adds nothing and costs nothing.
        """
        return None

    def resize(self, length: int) -> None:
        """Make the scheme fit sequences of up to `length`."""
        self.length = length

    def places(self, length: int, device: torch.device) -> Tensor:
        """The positions of a padded sequence; padding beyond the scheme's reach stands at its last position."""
        places_T = torch.arange(length, device=device)
        return places_T if self.extends or length <= self.length else places_T.clamp_(max=self.length - 1)

    def extend(self, length: int) -> None:
        """Make sure that a scheme without a limit (`extends`) reaches up to `length`."""
        if self.extends and length > self.length:
            self.resize(length)

    def cover(self, length: int, max_length: int | None = None) -> None:
        """Make sure that the scheme reaches up to `length`, or raise a ValueError that names the limit of the model."""
        self.extend(length)
        if length > self.length:
            raise ValueError(f"the sequences have {length} positions, but max_length is {max_length or self.length}")


def distances(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """T S or B T S: how far each key is after its query; before it, the distance is negative."""
    return key_positions[..., None, :] - query_positions[..., :, None]
