"""The settings of a stack of blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from heedful.config import require
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.position_scheme import PositionConfig, PositionSizes
from heedful.settings.positions import traits_of


@dataclass(frozen=True)
class StackConfig:
    """The settings of a stack of blocks.

    `norm` says where a block normalises, `norm_kind` how. With a `local_window`, every other layer, starting with the
    second, sees only positions closer than that, as in GPT-3.
    """

    num_layers: int = 6
    norm: Literal["post", "pre"] = "post"
    dropout: float = 0.1
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    feed_forward: FeedForwardConfig = field(default_factory=FeedForwardConfig)
    norm_kind: Literal["layer", "rms"] = "layer"
    norm_epsilon: float = 1e-5
    local_window: int | None = None

    def __post_init__(self) -> None:
        require(self.num_layers, "num_layers", 1)
        require(self.dropout, "dropout", 0, 1)
        require(self.norm_epsilon, "norm_epsilon", 0)
        require(1 if self.local_window is None else self.local_window, "local_window", 1, 2**31)

    def window(self, layer: int) -> int | None:
        """How far the attention of a layer, counted from 0, reaches; None is everywhere."""
        return self.local_window if layer % 2 else None

    def summary(self) -> str:
        """The settings that matter most, in words."""
        return f"{self.attention.num_heads} heads, dropout {self.dropout}, {self.norm}-norm"

    def activation_bytes(
        self, width: int, length: int, attentions: int, positions: PositionConfig | str = "none"
    ) -> int:
        """Bytes that one token needs between the forward and the backward pass, in sequences of `length`.

        Counted per block: inputs, projections, attention output and norms (about 16 widths per attention), twice
        the feed-forward's inner width, and per head a row of attention scores where the kernel keeps them, or
        four rows (scores, weights and their masks) without a kernel, or where positions add a bias to the scores.
        """
        inner = self.feed_forward.inner_width or 4 * width
        if self.feed_forward.activation == "swiglu":
            inner *= 2
        explicit = self.attention.scoring == "additive" or traits_of(positions).adds_bias
        scores = length * (4 if explicit else 1)
        block = 16 * attentions * width + 2 * inner + attentions * self.attention.num_heads * scores
        return 4 * self.num_layers * block


def position_sizes(width: int, config: StackConfig, length: int, *, causal: bool = False) -> PositionSizes:
    """What a position scheme needs to know about a stack."""
    attention = config.attention
    return PositionSizes(width, attention.width_per_head(width), length, attention.num_heads, causal)
