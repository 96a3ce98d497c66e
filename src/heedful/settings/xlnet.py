"""The settings of an XLNet."""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.config import require
from heedful.errors import UserError
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens


@dataclass(frozen=True)
class OrderConfig:
    """The order in which the tokens of a segment are learned.

    `predicted` is the share of the order, from its end, that is predicted: the paper takes 1/6. `left_to_right` is the
    share of segments that are read in the plain order, in which text is scored and generated.
    """

    predicted: float = 1.0
    left_to_right: float = 0.5

    def __post_init__(self) -> None:
        for name in ("predicted", "left_to_right"):
            if not 0 <= getattr(self, name) <= 1:
                raise UserError(f"{name} is {getattr(self, name)}, but must be between 0 and 1")


def _stack() -> StackConfig:
    return StackConfig(
        num_layers=12,
        attention=AttentionConfig(num_heads=12, bias=False),
        feed_forward=FeedForwardConfig(activation="gelu"),
        norm_epsilon=1e-12,
    )


@dataclass(frozen=True)
class XLNetConfig:
    """The settings of an XLNet; `max_length` is its context, of which `memory_length` is memory of earlier text.

    A `causal` model (Transformer-XL's attention) sees nothing to the right whatever the order; with `clamp_length`
    all larger distances are alike; with `segments`, attention knows whether two tokens are in the same segment.
    """

    vocabulary_size: int | None = None
    width: int = 768
    max_length: int = 512
    memory_length: int = 256
    causal: bool = False
    clamp_length: int | None = None
    segments: bool = False
    orders: OrderConfig = field(default_factory=OrderConfig)
    stack: StackConfig = field(default_factory=_stack)
    special_tokens: SpecialTokens = field(default_factory=SpecialTokens)

    def __post_init__(self) -> None:
        require(1 if self.vocabulary_size is None else self.vocabulary_size, "vocabulary_size", 1)
        require(self.width, "width", 2)
        require(self.max_length, "max_length", 2)
        require(self.memory_length, "memory_length", 0, self.max_length)
        require(1 if self.clamp_length is None else self.clamp_length, "clamp_length", 1)
        if self.width % 2:
            raise UserError(f"width is {self.width}, but must be even: half of it are sines, half cosines")
        attention = self.stack.attention
        given = {
            "stack.norm": (self.stack.norm, "post"),
            "stack.local_window": (self.stack.local_window, None),
            "stack.attention.scoring": (attention.scoring, "dot"),
            "stack.attention.num_key_value_heads": (attention.num_key_value_heads, None),
        }
        for name, (value, only) in given.items():
            if value != only:
                raise UserError(f"{name} is {value!r}, but an xlnet model has {only!r}: leave it out")

    def summary(self) -> str:
        """The settings that matter most, in words."""
        layers = f"{self.stack.num_layers} layers, width {self.width}, {self.stack.summary()}"
        return f"{layers}, context {self.max_length:,}, memory {self.memory_length:,}"

    def activation_bytes(self) -> int:
        """Bytes that one token needs in training; written-out attention keeps about 6 rows of scores per head."""
        return self.stack.activation_bytes(self.width, 6 * self.max_length, 2)
