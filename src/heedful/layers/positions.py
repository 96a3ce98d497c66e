"""How a model learns where a token stands: one class per scheme, all behind the same three methods.

One rule holds for using a model at another length than it was trained at (`resize`): sinusoidal tables
extend, learned tables interpolate, rotary angles rescale.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.errors import UserError


class PositionScheme(nn.Module):
    """No positions at all, and the interface of all schemes."""

    extends = True

    def __init__(self, width: int, head_width: int, length: int) -> None:
        super().__init__()
        self.width, self.head_width = width, head_width
        self.trained_length = self.length = length

    def add(self, x_BTD: Tensor, positions: Tensor) -> Tensor:
        """The embeddings with what the scheme adds to them; positions are T, or B 1 in a decoding step."""
        return x_BTD

    def rotate(self, x_BHTK: Tensor, positions: Tensor) -> Tensor:
        """The queries or keys as the scheme turns them."""
        return x_BHTK

    def resize(self, length: int) -> None:
        """Make the scheme good for sequences of up to `length`."""
        self.length = length

    def places(self, length: int, device: torch.device) -> Tensor:
        """The positions of a padded sequence; padding beyond the scheme's reach stands at its last position."""
        places_T = torch.arange(length, device=device)
        return places_T if self.extends or length <= self.length else places_T.clamp_(max=self.length - 1)

    def extend(self, length: int) -> None:
        """Make sure that a scheme that knows no limit (`extends`) reaches up to `length`."""
        if self.extends and length > self.length:
            self.resize(length)


class SinusoidalPositions(PositionScheme):
    """The paper's sines and cosines (3.5), computed once."""

    table: Tensor

    def __init__(self, width: int, head_width: int, length: int) -> None:
        super().__init__(width, head_width, length)
        self.register_buffer("table", self._table(length), persistent=False)

    def _table(self, length: int) -> Tensor:
        return sinusoid_table(length, self.width)

    def add(self, x_BTD: Tensor, positions: Tensor) -> Tensor:
        return x_BTD + self.table[positions]

    def resize(self, length: int) -> None:
        super().resize(length)
        self.table = self._table(length).to(self.table)


class SinusoidHalvesPositions(SinusoidalPositions):
    """The paper's positions with all sines before all cosines, as Marian has them."""

    def _table(self, length: int) -> Tensor:
        table = sinusoid_table(length, self.width)
        return torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)


class LearnedPositions(PositionScheme):
    """A trained vector per position."""

    extends = False

    def __init__(self, width: int, head_width: int, length: int) -> None:
        super().__init__(width, head_width, length)
        self.table = nn.Parameter(torch.randn(length, width) * 0.02)

    def add(self, x_BTD: Tensor, positions: Tensor) -> Tensor:
        return x_BTD + self.table[positions]

    def resize(self, length: int) -> None:
        if length == self.length:
            return
        super().resize(length)
        table = self.table.detach().T[None]
        resized = F.interpolate(table, size=length, mode="linear", align_corners=True)[0].T
        self.table = nn.Parameter(resized.contiguous())


def _turn(x_BHTK: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Each pair of an element of the first half and one of the second, turned by an angle."""
    turned = torch.empty_like(x_BHTK)
    (first, second), (turned_first, turned_second) = x_BHTK.chunk(2, dim=-1), turned.chunk(2, dim=-1)
    torch.mul(first, cosine, out=turned_first).addcmul_(second, sine, value=-1)
    torch.mul(second, cosine, out=turned_second).addcmul_(first, sine)
    return turned


class _Turn(torch.autograd.Function):
    """`_turn`, whose gradient is turned back: half of the passes that torch would take by itself."""

    @staticmethod
    def forward(ctx: Any, x_BHTK: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(cosine, sine)
        return _turn(x_BHTK, cosine, sine)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cosine, sine = ctx.saved_tensors
        return _turn(gradients[0], cosine, -sine), None, None


class RotaryPositions(PositionScheme):
    """Queries and keys turned by angles in proportion to their position (Su et al., 2021)."""

    extends = False
    cosines: Tensor
    sines: Tensor

    def __init__(self, width: int, head_width: int, length: int) -> None:
        super().__init__(width, head_width, length)
        if head_width % 2 or head_width < 2:
            raise UserError(f"rotary positions need an even key width per head, not {head_width}")
        cosines, sines = self._tables(length)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)

    def _tables(self, length: int) -> tuple[Tensor, Tensor]:
        # Beyond the trained length positions are squeezed into the range that was seen in training.
        step = min(1.0, self.trained_length / length)
        positions = torch.arange(length, dtype=torch.float64)[:, None] * step
        half = torch.arange(0, self.head_width, 2, dtype=torch.float64)
        angles = positions * torch.exp(half * (-math.log(10000.0) / self.head_width))
        return angles.cos().float(), angles.sin().float()

    def rotate(self, x_BHTK: Tensor, positions: Tensor) -> Tensor:
        cosine, sine = self.cosines[positions], self.sines[positions]
        if positions.dim() == 2:  # B 1 K/2 -> B 1 1 K/2: the same for every head
            cosine, sine = cosine[:, None], sine[:, None]
        return _Turn.apply(x_BHTK, cosine, sine)  # type: ignore[no-untyped-call]

    def resize(self, length: int) -> None:
        super().resize(length)
        cosines, sines = self._tables(length)
        self.cosines, self.sines = cosines.to(self.cosines), sines.to(self.sines)


PositionName = Literal["sinusoidal", "sinusoid_halves", "learned", "rotary", "none"]
SCHEMES: dict[str, type[PositionScheme]] = {
    "sinusoidal": SinusoidalPositions,
    "sinusoid_halves": SinusoidHalvesPositions,
    "learned": LearnedPositions,
    "rotary": RotaryPositions,
    "none": PositionScheme,
}


def sinusoid_table(length: int, width: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same."""
    positions = torch.arange(length, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, width, 2, dtype=torch.float64) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = (positions * rates).sin().float()
    table[:, 1::2] = (positions * rates).cos().float()[:, : width // 2]
    return table
