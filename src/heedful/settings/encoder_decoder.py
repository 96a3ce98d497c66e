"""The settings of an encoder-decoder."""

from __future__ import annotations

from dataclasses import dataclass, field

from heedful.config import require
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.positions import Positions
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens


@dataclass(frozen=True)
class EncoderDecoderConfig:
    """The settings of an encoder-decoder; `max_length` is the length of the longest sequence in training.

    The vocabulary's size is that of the tokenizer, and None until there is one.
    """

    vocabulary_size: int | None = None
    width: int = 512
    max_length: int = 256
    positions: Positions = "sinusoidal"
    shared_embeddings: bool = True
    tied_output: bool = True
    encoder: StackConfig = field(default_factory=StackConfig)
    decoder: StackConfig = field(default_factory=StackConfig)
    output_bias: bool = False
    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    special_tokens: SpecialTokens = field(default_factory=SpecialTokens)

    def __post_init__(self) -> None:
        require(1 if self.vocabulary_size is None else self.vocabulary_size, "vocabulary_size", 1)
        require(self.width, "width", 1)
        require(self.max_length, "max_length", 1)

    def summary(self) -> str:
        """The settings that matter most, in words."""
        layers = f"{self.encoder.num_layers}+{self.decoder.num_layers}"
        return f"{layers} layers, width {self.width}, {self.encoder.summary()}, {self.positions} positions"

    def activation_bytes(self) -> int:
        """Bytes that one token needs in training; it goes through the encoder or the decoder: the larger counts."""
        stacks = ((self.encoder, 1), (self.decoder, 2))
        return max(
            stack.activation_bytes(self.width, self.max_length, attentions, self.positions)
            for stack, attentions in stacks
        )
