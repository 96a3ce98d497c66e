"""The settings of the feed-forward network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.config import require


@dataclass(frozen=True)
class FeedForwardConfig:
    """Settings of the feed-forward network; the inner width defaults to four times the model's.

    `gelu_tanh` is GPT-2's approximation of GELU; `swiglu` multiplies SiLU with a second projection (Shazeer, 2020).
    """

    inner_width: int | None = None
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "swiglu"] = "relu"
    bias: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require(self.inner_width or 1, "inner_width", 1)
        require(self.dropout, "feed-forward dropout", 0, 1)
