"""The settings of a decoder-only model."""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.config import require
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.positions import Positions
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens


@dataclass(frozen=True)
class DecoderOnlyConfig:
    """The settings of a decoder-only model; `max_length` is its context.

    The vocabulary's size is that of the tokenizer, and None until there is one.
    """

    vocabulary_size: int | None = None
    width: int = 768
    max_length: int = 1024
    positions: Positions = "learned"
    tied_output: bool = True
    embedding: EmbeddingConfig = field(default_factory=lambda: EmbeddingConfig(scaled=False))
    stack: StackConfig = field(default_factory=lambda: StackConfig(norm="pre"))
    special_tokens: SpecialTokens = field(default_factory=SpecialTokens)

    def __post_init__(self) -> None:
        require(1 if self.vocabulary_size is None else self.vocabulary_size, "vocabulary_size", 1)
        require(self.width, "width", 1)
        require(self.max_length, "max_length", 2)

    def summary(self) -> str:
        """The settings that matter most, in words."""
        layers = f"{self.stack.num_layers} layers, width {self.width}, {self.stack.summary()}"
        return f"{layers}, {self.positions} positions, context {self.max_length:,}"

    def activation_bytes(self) -> int:
        """Bytes that one token needs in training."""
        return self.stack.activation_bytes(self.width, self.max_length, 1, self.positions)
