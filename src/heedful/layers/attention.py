"""Scaled dot-product attention (paper, 3.2.1) and its multi-head form (3.2.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.config import require
from heedful.errors import UserError
from heedful.layers.dropout import dropout as byte_dropout
from heedful.layers.kv_cache import LayerCache
from heedful.layers.positions import PositionScheme

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, bool, float, float], Tensor]


@dataclass(frozen=True)
class AttentionConfig:
    """The settings of multi-head attention; widths are per head, and default to model width / heads."""

    num_heads: int = 8
    key_width: int | None = None
    value_width: int | None = None
    scaled: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        require(self.num_heads, "num_heads", 1)
        require(self.key_width or 1, "key_width", 1)
        require(self.value_width or 1, "value_width", 1)
        require(self.dropout, "attention dropout", 0, 1)


def attend_fused(
    query_BHTK: Tensor,
    key_BHSK: Tensor,
    value_BHSV: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    dropout: float,
) -> Tensor:
    """Attention by torch's fused kernel; `mask` is True where a query may see a key."""
    if dropout and query_BHTK.device.type == "cpu":  # the fused kernel cannot drop weights on a CPU
        return attend_explicit(query_BHTK, key_BHSK, value_BHSV, mask, causal, scale, dropout)
    if causal and mask is not None:
        mask, causal = mask & causal_mask(query_BHTK.shape[2], key_BHSK.shape[2], query_BHTK.device), False
    output = F.scaled_dot_product_attention(
        query_BHTK, key_BHSK, value_BHSV, mask, dropout_p=dropout, is_causal=causal, scale=scale
    )
    if mask is None:
        return output
    blind = ~mask.any(-1, keepdim=True)
    # The look is cheap on a CPU; elsewhere it would make the host wait.
    if output.device.type == "cpu" and not bool(blind.any()):
        return output
    return output.masked_fill(blind, 0.0)


def attention_weights(query_BHTK: Tensor, key_BHSK: Tensor, mask: Tensor | None, causal: bool, scale: float) -> Tensor:
    """The softmax of the paper's equation 1, with rows of zeros where no key may be seen."""
    scores_BHTS = (query_BHTK * scale) @ key_BHSK.transpose(-1, -2)
    if causal:
        future = causal_mask(query_BHTK.shape[2], key_BHSK.shape[2], query_BHTK.device)
        mask = future if mask is None else mask & future
    if mask is None:
        return scores_BHTS.softmax(-1)
    # The lowest finite number, not -inf: a row without any key must have a gradient, and no NaN.
    weights_BHTS = scores_BHTS.masked_fill(~mask, torch.finfo(scores_BHTS.dtype).min).softmax(-1)
    return weights_BHTS * mask


def attend_explicit(
    query_BHTK: Tensor,
    key_BHSK: Tensor,
    value_BHSV: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    dropout: float,
) -> Tensor:
    """The same as `attend_fused`, written out, so that the weights can be had."""
    weights_BHTS = attention_weights(query_BHTK, key_BHSK, mask, causal, scale)
    return (byte_dropout(weights_BHTS, dropout) if dropout else weights_BHTS) @ value_BHSV


def causal_mask(query_length: int, key_length: int, device: torch.device) -> Tensor:
    """True where key position <= query position (paper, 3.2.3)."""
    return torch.ones(query_length, key_length, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """What self- and cross-attention share: the heads' widths, `attend`, and the output projection."""

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__()
        if config.key_width is None and width % config.num_heads:
            raise UserError(
                f"a width of {width} cannot be split over {config.num_heads} heads: "
                "choose num_heads that divides the width, or set key_width and value_width"
            )
        self.num_heads = config.num_heads
        self.key_width = config.key_width or width // config.num_heads
        self.value_width = config.value_width or self.key_width
        self.scale = 1.0 / math.sqrt(self.key_width) if config.scaled else 1.0
        self.dropout = config.dropout
        self.attend: Attend = attend_fused
        self.output_projection = nn.Linear(self.num_heads * self.value_width, width)

    def split(self, packed_BTX: Tensor, *widths: int) -> list[Tensor]:
        """Cut the last axis into parts of `num_heads` heads each: B T (H K + H K + H V) -> B H T K, ..."""
        B, T, _ = packed_BTX.shape
        parts = packed_BTX.split([self.num_heads * width for width in widths], dim=-1)
        return [part.view(B, T, self.num_heads, -1).transpose(1, 2) for part in parts]

    def mix(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend in every head, join the heads, and project back to the model's width."""
        dropout = self.dropout if self.training else 0.0
        heads_BHTV = self.attend(query, key, value, mask, causal, self.scale, dropout)
        return self.output_projection(heads_BHTV.transpose(1, 2).flatten(2))


class SelfAttention(MultiHeadAttention):
    """Attention of a sequence to itself; the three input projections are one matrix, hence one product."""

    def __init__(self, width: int, config: AttentionConfig, positions: PositionScheme) -> None:
        super().__init__(width, config)
        # Held in a list: the scheme is shared by all layers, and belongs to the model.
        self._positions = [positions]
        total = self.num_heads * (2 * self.key_width + self.value_width)
        self.query_key_value_projection = nn.Linear(width, total)

    def _project(self, x_BTD: Tensor, positions: Tensor) -> list[Tensor]:
        packed = self.query_key_value_projection(x_BTD)
        query, key, value = self.split(packed, self.key_width, self.key_width, self.value_width)
        rotate = self._positions[0].rotate
        return [rotate(query, positions), rotate(key, positions), value]

    def forward(self, x_BTD: Tensor, positions_T: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        """Attend within whole sequences."""
        query, key, value = self._project(x_BTD, positions_T)
        return self.mix(query, key, value, mask, causal)

    def step(self, x_RD: Tensor, cache: LayerCache) -> Tensor:
        """Attend from one new position a row to the positions in the cache, which takes in the new one."""
        query, key, value = self._project(x_RD[:, None], cache.positions_R1)
        key, value = cache.append(key, value)
        return self.mix(query, key, value, cache.mask_R11S, False)[:, 0]


class CrossAttention(MultiHeadAttention):
    """Attention from a sequence to the encoder's output, whose keys and values are computed once."""

    def __init__(self, width: int, config: AttentionConfig) -> None:
        super().__init__(width, config)
        self.query_projection = nn.Linear(width, self.num_heads * self.key_width)
        self.key_value_projection = nn.Linear(width, self.num_heads * (self.key_width + self.value_width))

    def keys_values(self, memory_BSD: Tensor) -> list[Tensor]:
        """The keys and values of the encoder's output, by head."""
        return self.split(self.key_value_projection(memory_BSD), self.key_width, self.value_width)

    def forward(self, x_BTD: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Attend to keys and values made by `keys_values`."""
        (query,) = self.split(self.query_projection(x_BTD), self.key_width)
        return self.mix(query, key, value, mask, False)
