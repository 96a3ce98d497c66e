"""The two kinds of block that stacks are made of (paper, 3.1): with self-attention only, or cross-attention too."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from heedful.layers.dropout import Dropout
from heedful.layers.feed_forward import FeedForward
from heedful.layers.multi_head_attention import MultiHeadAttention, SelfAttention, StepCache
from heedful.layers.positions import PositionScheme
from heedful.settings.stack import StackConfig


def make_norm(width: int, config: StackConfig) -> nn.Module:
    """A layer norm, or the cheaper RMS norm."""
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
        """Transform whole sequences causally, and return their keys and values too."""
        kept: list[Tensor] = []

        def attend(y_BTD: Tensor) -> Tensor:
            query, key, value = self.attention.project(y_BTD, positions_T)
            kept.extend((key, value))
            return self.attention.attend_within(query, key, value, positions_T, None, True)

        x_BTD = self.attention_residual(x_BTD, attend)
        return self.feed_forward_residual(x_BTD, self.feed_forward), kept[0], kept[1]

    def step(self, x_RD: Tensor, cache: StepCache) -> Tensor:
        """Transform one new position per row."""
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
        """Transform one new position per row; the rows of one sentence share its memory's keys and values."""
        x_RD = self.attention_residual(x_RD, lambda y: self.attention.step(y, cache))
        x_RD = self.cross_residual(x_RD, lambda y: self.cross_attention.step(y, cache, key, value, mask))
        return self.feed_forward_residual(x_RD, self.feed_forward)


def final_norm(width: int, config: StackConfig) -> nn.Module:
    """Pre-norm stacks end in a separate norm; post-norm blocks already end in one."""
    return make_norm(width, config) if config.norm == "pre" else nn.Identity()


def initialise(module: nn.Module) -> None:
    """Glorot for projections, and embeddings whose sum, scaled by the root of the width, has unit variance."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
