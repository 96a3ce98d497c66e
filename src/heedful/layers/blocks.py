"""The two kinds of block that stacks are made of (paper, 3.1): with self-attention, and with cross-attention too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn

from heedful.config import require
from heedful.layers.attention import AttentionConfig
from heedful.layers.dropout import Dropout
from heedful.layers.feed_forward import FeedForward, FeedForwardConfig
from heedful.layers.multi_head_attention import MultiHeadAttention, SelfAttention, StepCache
from heedful.layers.positions import PositionConfig, PositionScheme, scheme_of


@dataclass(frozen=True)
class StackConfig:
    """The settings of a stack of blocks.

    `norm` is where a block normalises, `norm_kind` how. With a `local_window`, every second layer, from the
    second on, sees only positions fewer than so many away, as in GPT-3.
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

        Counted per block: inputs, projections, attention output and norms (about 16 widths an attention), twice
        the feed-forward's inner width, and per head a row of attention scores where the kernel keeps them, or
        four rows (scores, weights and their masks) without a kernel, or where positions add a bias to the scores.
        """
        inner = self.feed_forward.inner_width or 4 * width
        if self.feed_forward.activation == "swiglu":
            inner *= 2
        explicit = self.attention.scoring == "additive" or scheme_of(positions).uses("bias")
        scores = length * (4 if explicit else 1)
        block = 16 * attentions * width + 2 * inner + attentions * self.attention.num_heads * scores
        return 4 * self.num_layers * block


def make_norm(width: int, config: StackConfig) -> nn.Module:
    """A layer norm, or the cheaper norm by the root of the mean square."""
    kind = nn.LayerNorm if config.norm_kind == "layer" else nn.RMSNorm
    return kind(width, eps=config.norm_epsilon)


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), as in the paper."""

    def __init__(self, width: int, config: StackConfig) -> None:
        super().__init__()
        self.norm = make_norm(width, config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer inside its residual connection."""
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(nn.Module):
    """x + Dropout(Sublayer(LayerNorm(x))), which trains deep stacks without warm-up."""

    def __init__(self, width: int, config: StackConfig) -> None:
        super().__init__()
        self.norm = make_norm(width, config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer inside its residual connection."""
        return x + self.dropout(sublayer(self.norm(x)))


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}


class SelfBlock(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(
        self, width: int, config: StackConfig, positions: PositionScheme | None = None, layer: int = 0
    ) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.attention = SelfAttention(width, config.attention, positions, config.window(layer))
        self.attention_residual = residual(width, config)
        self.feed_forward = FeedForward(width, config.feed_forward)
        self.feed_forward_residual = residual(width, config)

    @property
    def added_by(self) -> list[nn.Module]:
        """The last layer of each sub-layer, whose output is added to the residual stream."""
        return [self.attention.output_projection, self.feed_forward.output_projection]

    def forward(
        self, x_BTD: Tensor, mask: Tensor | None = None, *, causal: bool = False, positions: Tensor | None = None
    ) -> Tensor:
        """Transform whole sequences; see `SelfAttention` for masks and positions."""
        x_BTD = self.attention_residual(x_BTD, lambda y: self.attention(y, mask, causal=causal, positions=positions))
        return self.feed_forward_residual(x_BTD, self.feed_forward)

    def prefill(self, x_BTD: Tensor, positions_T: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Transform whole sequences causally, and give their keys and values too."""
        kept: list[Tensor] = []

        def attend(y_BTD: Tensor) -> Tensor:
            query, key, value = self.attention.project(y_BTD, positions_T)
            kept.extend((key, value))
            return self.attention.attend_within(query, key, value, positions_T, None, True)

        x_BTD = self.attention_residual(x_BTD, attend)
        return self.feed_forward_residual(x_BTD, self.feed_forward), kept[0], kept[1]

    def step(self, x_RD: Tensor, cache: StepCache) -> Tensor:
        """Transform one new position a row."""
        x_RD = self.attention_residual(x_RD, lambda y: self.attention.step(y, cache))
        return self.feed_forward_residual(x_RD, self.feed_forward)


class CrossBlock(nn.Module):
    """Causal self-attention, attention to the encoder's output, then the feed-forward network."""

    def __init__(
        self, width: int, config: StackConfig, positions: PositionScheme | None = None, layer: int = 0
    ) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.attention = SelfAttention(width, config.attention, positions, config.window(layer))
        self.attention_residual = residual(width, config)
        self.cross_attention = MultiHeadAttention(width, config.attention)
        self.cross_residual = residual(width, config)
        self.feed_forward = FeedForward(width, config.feed_forward)
        self.feed_forward_residual = residual(width, config)

    @property
    def added_by(self) -> list[nn.Module]:
        """The last layer of each sub-layer, whose output is added to the residual stream."""
        attentions = (self.attention, self.cross_attention)
        return [*(each.output_projection for each in attentions), self.feed_forward.output_projection]

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        memory_mask: Tensor | None = None,
        *,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Transform whole sequences; position t sees positions up to t, and all of the memory that the mask allows."""
        x_BTD = self.attention_residual(x_BTD, lambda y: self.attention(y, causal=True, positions=positions))
        x_BTD = self.cross_residual(x_BTD, lambda y: self.cross_attention(y, memory_BSD, mask=memory_mask))
        return self.feed_forward_residual(x_BTD, self.feed_forward)

    def step(self, x_RD: Tensor, cache: StepCache, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Transform one new position a row; the rows of one sentence share its memory's keys and values."""
        x_RD = self.attention_residual(x_RD, lambda y: self.attention.step(y, cache))
        x_RD = self.cross_residual(x_RD, lambda y: self.cross_attention.step(y, cache, key, value, mask))
        return self.feed_forward_residual(x_RD, self.feed_forward)


def final_norm(width: int, config: StackConfig) -> nn.Module:
    """Pre-norm stacks end in a norm of their own; post-norm blocks already do."""
    return make_norm(width, config) if config.norm == "pre" else nn.Identity()


def initialise(module: nn.Module) -> None:
    """Glorot for projections, and embeddings whose sum, scaled by the root of the width, has unit variance."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
