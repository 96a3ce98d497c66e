"""The settings of rotary positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.config import require
from heedful.errors import UserError
from heedful.settings.position_scheme import PositionConfig, SchemeTraits


@dataclass(frozen=True)
class RotaryScaling:
    """How angles are made smaller, so that a model reaches `factor` times as far.

    `linear` divides all angles by the factor (Chen et al., 2023). `ntk` raises the base, which leaves the fastest
    angles as they are and divides the slowest by the factor. `llama3` leaves wavelengths that fit at least
    `high_frequency_factor` times into the `original_length` as they are, divides those that fit fewer than
    `low_frequency_factor` times, and blends in between.
    """

    kind: Literal["linear", "ntk", "llama3"]
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_length: int = 8192

    def __post_init__(self) -> None:
        require(self.factor, "positions.scaling.factor", 1)
        require(self.original_length, "positions.scaling.original_length", 1)
        require(self.low_frequency_factor, "positions.scaling.low_frequency_factor", 0)
        if not self.high_frequency_factor > self.low_frequency_factor:
            raise UserError("positions.scaling.high_frequency_factor must be above low_frequency_factor")

    def base(self, base: float, head_width: int) -> float:
        """The base that the angles are powers of."""
        if self.kind != "ntk" or head_width == 2:  # a single angle has no slowest one
            return base
        return base * self.factor ** (head_width / (head_width - 2))


@dataclass(frozen=True)
class RotaryConfig(PositionConfig):
    """The base, whose powers are the wavelengths, and a scaling, if there is one."""

    scheme: str = "rotary"
    base: float = 10000.0
    scaling: RotaryScaling | None = None

    def __post_init__(self) -> None:
        if not self.base > 1:
            raise UserError(f"positions.base is {self.base}, but must be above 1")


ROTARY = SchemeTraits(RotaryConfig, extends=False, computes_table=True)
