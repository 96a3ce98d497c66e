"""Queries and keys turned by angles proportional to their position (Su et al., 2021)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.layers.positions.scheme import PositionScheme
from heedful.settings.position_scheme import PositionConfig, PositionSizes
from heedful.settings.rotary import ROTARY, RotaryConfig, RotaryScaling


class RotaryPositions(PositionScheme):
    """Each pair of elements of a query or key, turned by its own angle per position."""

    extends = ROTARY.extends
    cosines: Tensor
    sines: Tensor

    def __init__(self, sizes: PositionSizes, config: PositionConfig | None = None) -> None:
        super().__init__(sizes, config)
        config = config or RotaryConfig()
        assert isinstance(config, RotaryConfig)
        self.base, self.scaling = config.base, config.scaling
        if sizes.head_width % 2 or sizes.head_width < 2:
            raise UserError(f"rotary positions need an even key width per head, not {sizes.head_width}")
        cosines, sines = self._tables(sizes.length)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    def _tables(self, length: int) -> tuple[Tensor, Tensor]:
        # Beyond the trained length, positions are squeezed into the range seen in training.
        step = min(1.0, self.sizes.length / length)
        positions = torch.arange(length, dtype=torch.float64)[:, None] * step
        angles = positions * self.rates()
        return angles.cos().float(), angles.sin().float()

    def rates(self) -> Tensor:
        """The angle per position of each pair, K/2."""
        width = self.sizes.head_width
        base = self.scaling.base(self.base, width) if self.scaling else self.base
        half = torch.arange(0, width, 2, dtype=torch.float64)
        rates = torch.exp(half * (-math.log(base) / width))
        return scaled_rates(rates, self.scaling) if self.scaling else rates

    def rotate(self, x_BHTK: Tensor, positions: Tensor) -> Tensor:
        cosine, sine = self.cosines[positions], self.sines[positions]
        if positions.dim() == 2:  # B 1 K/2 -> B 1 1 K/2: the same for every head
            cosine, sine = cosine[:, None], sine[:, None]
        if torch.compiler.is_compiling():
            # A compiler fuses the passes by itself, and does not follow writes into parts of a tensor.
            first, second = x_BHTK.chunk(2, dim=-1)
            return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
        return _Turn.apply(x_BHTK, cosine, sine)  # type: ignore[no-untyped-call]

    def resize(self, length: int) -> None:
        super().resize(length)
        cosines, sines = self._tables(length)
        self.cosines, self.sines = cosines.to(self.cosines), sines.to(self.sines)


def scaled_rates(rates: Tensor, scaling: RotaryScaling) -> Tensor:
    """The angle per position of each pair, made smaller; for `ntk` the base has done that already."""
    if scaling.kind == "ntk":
        return rates
    if scaling.kind == "linear":
        return rates / scaling.factor
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    turns = scaling.original_length * rates / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * rates + (1 - kept) * rates / scaling.factor


def _turn(x_BHTK: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Each pair of an element of the first half and one of the second, turned by an angle."""
    turned = torch.empty_like(x_BHTK)
    (first, second), (turned_first, turned_second) = x_BHTK.chunk(2, dim=-1), turned.chunk(2, dim=-1)
    torch.mul(first, cosine, out=turned_first).addcmul_(second, sine, value=-1)
    torch.mul(second, cosine, out=turned_second).addcmul_(first, sine)
    return turned


class _Turn(torch.autograd.Function):
    """`_turn`, whose gradient is turned back: half of the passes that torch would take."""

    @staticmethod
    def forward(ctx: Any, x_BHTK: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(cosine, sine)
        return _turn(x_BHTK, cosine, sine)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return _turn(gradients[0], cosine, -sine), None, None
