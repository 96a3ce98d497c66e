"""The position-wise feed-forward network (paper, 3.3)."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from heedful.layers.dropout import Dropout
from heedful.settings.feed_forward import FeedForwardConfig


class SwiGlu(nn.Module):
    """SiLU of one half, times the other half."""

    def forward(self, x_BTF: Tensor) -> Tensor:
        """Halve the last axis."""
        gate, value = x_BTF.chunk(2, dim=-1)
        return F.silu(gate) * value


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: nn.ReLU(inplace=True),
    "gelu": nn.GELU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "silu": nn.SiLU,
    "swiglu": SwiGlu,
}


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2 (equation 2), or with another activation instead of the maximum."""

    def __init__(self, width: int, config: FeedForwardConfig) -> None:
        super().__init__()
        inner = config.inner_width or 4 * width
        projected = 2 * inner if config.activation == "swiglu" else inner
        self.inner_projection = nn.Linear(width, projected, config.bias)
        self.activation = ACTIVATIONS[config.activation]()
        self.dropout = Dropout(config.dropout) if config.dropout else nn.Identity()
        self.output_projection = nn.Linear(inner, width, config.bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Apply the network at every position separately."""
        hidden_BTF = self.dropout(self.activation(self.inner_projection(x_BTD)))
        return self.output_projection(hidden_BTF)
