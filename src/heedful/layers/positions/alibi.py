"""Attention with linear biases: keys count for less the farther away they are (Press et al., 2022)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from heedful.layers.positions.scheme import PositionScheme, distances
from heedful.settings.position_scheme import PositionConfig, PositionSizes


class AlibiPositions(PositionScheme):
    """A penalty in proportion to the distance, with a slope per head; in encoders the same on both sides.

    Nothing depends on the length, so sequences may be longer than in training.
    """

    slopes: Tensor

    def __init__(self, sizes: PositionSizes, config: PositionConfig | None = None) -> None:
        super().__init__(sizes, config)
        self.register_buffer("slopes", torch.tensor(alibi_slopes(sizes.num_heads)), persistent=False)

    def bias(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        distances_1TS = distances(query_positions, key_positions).abs().unsqueeze(-3)
        return -self.slopes[:, None, None] * distances_1TS


def alibi_slopes(num_heads: int) -> list[float]:
    """A geometric sequence from 2^(-8/H) to 2^-8; between powers of two, every other slope of the next is added."""
    largest_power = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * (head + 1) / largest_power) for head in range(largest_power)]
    between = [2 ** (-8 * (head + 1) / (2 * largest_power)) for head in range(0, 2 * largest_power, 2)]
    return slopes + between[: num_heads - largest_power]
