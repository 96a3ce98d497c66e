"""Encoder and decoder blocks and the stacks made of them (paper, 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn

from heedful.config import require
from heedful.layers.attention import AttentionConfig, CrossAttention, SelfAttention
from heedful.layers.dropout import Dropout
from heedful.layers.feed_forward import FeedForward, FeedForwardConfig
from heedful.layers.kv_cache import LayerCache
from heedful.layers.positions import PositionScheme


@dataclass(frozen=True)
class StackConfig:
    """The settings of an encoder or a decoder."""

    num_layers: int = 6
    norm: Literal["post", "pre"] = "post"
    dropout: float = 0.1
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    feed_forward: FeedForwardConfig = field(default_factory=FeedForwardConfig)

    def __post_init__(self) -> None:
        require(self.num_layers, "num_layers", 1)
        require(self.dropout, "dropout", 0, 1)


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), as in the paper."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer inside its residual connection."""
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(nn.Module):
    """x + Dropout(Sublayer(LayerNorm(x))), which trains deep stacks without warm-up."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer inside its residual connection."""
        return x + self.dropout(sublayer(self.norm(x)))


RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, width: int, config: StackConfig, positions: PositionScheme) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.attention = SelfAttention(width, config.attention, positions)
        self.attention_residual = residual(width, config.dropout)
        self.feed_forward = FeedForward(width, config.feed_forward)
        self.feed_forward_residual = residual(width, config.dropout)

    def forward(self, x_BTD: Tensor, positions_T: Tensor, mask: Tensor | None) -> Tensor:
        """Transform whole sequences."""
        x_BTD = self.attention_residual(x_BTD, lambda y: self.attention(y, positions_T, mask, False))
        return self.feed_forward_residual(x_BTD, self.feed_forward)


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to the encoder's output, then the feed-forward network."""

    def __init__(self, width: int, config: StackConfig, positions: PositionScheme) -> None:
        super().__init__()
        residual = RESIDUALS[config.norm]
        self.attention = SelfAttention(width, config.attention, positions)
        self.attention_residual = residual(width, config.dropout)
        self.cross_attention = CrossAttention(width, config.attention)
        self.cross_residual = residual(width, config.dropout)
        self.feed_forward = FeedForward(width, config.feed_forward)
        self.feed_forward_residual = residual(width, config.dropout)

    def forward(self, x_BTD: Tensor, positions_T: Tensor, memory_BSD: Tensor, memory_mask: Tensor | None) -> Tensor:
        """Transform whole sequences; position t sees positions up to t, and all of the memory."""
        key, value = self.cross_attention.keys_values(memory_BSD)
        x_BTD = self.attention_residual(x_BTD, lambda y: self.attention(y, positions_T, None, True))
        x_BTD = self.cross_residual(x_BTD, lambda y: self.cross_attention(y, key, value, memory_mask))
        return self.feed_forward_residual(x_BTD, self.feed_forward)

    def step(self, x_RD: Tensor, cache: LayerCache, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        """Transform one new position a row; the rows of one sentence share its memory's keys and values."""
        sentences, width = key.shape[0], x_RD.shape[-1]

        def cross(y_RD: Tensor) -> Tensor:
            # The beams of a sentence are the queries of one attention: N beams D.
            y_NQD = y_RD.view(sentences, -1, width)
            return self.cross_attention(y_NQD, key, value, mask).view(-1, width)

        x_RD = self.attention_residual(x_RD, lambda y: self.attention.step(y, cache))
        x_RD = self.cross_residual(x_RD, cross)
        return self.feed_forward_residual(x_RD, self.feed_forward)


def final_norm(width: int, config: StackConfig) -> nn.Module:
    """Pre-norm stacks end in a norm of their own; post-norm blocks already do."""
    return nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()
