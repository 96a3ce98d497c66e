"""The position-wise feed-forward network (paper, 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from heedful.config import require
from heedful.layers.dropout import Dropout


@dataclass(frozen=True)
class FeedForwardConfig:
    """Settings of the feed-forward network; the inner width defaults to four times the model's."""

    inner_width: int | None = None
    activation: Literal["relu", "gelu"] = "relu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require(self.inner_width or 1, "inner_width", 1)
        require(self.dropout, "feed-forward dropout", 0, 1)


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 (equation 2), or with GELU in place of the maximum."""

    def __init__(self, width: int, config: FeedForwardConfig) -> None:
        super().__init__()
        inner = config.inner_width or 4 * width
        self.inner_projection = nn.Linear(width, inner)
        self.activation = nn.ReLU() if config.activation == "relu" else nn.GELU()
        self.dropout = Dropout(config.dropout) if config.dropout else nn.Identity()
        self.output_projection = nn.Linear(inner, width)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Apply the network at every position by itself."""
        hidden_BTF = self.dropout(self.activation(self.inner_projection(x_BTD)))
        return self.output_projection(hidden_BTF)
