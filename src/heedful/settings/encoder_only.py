"""The settings of an encoder-only model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from heedful.config import require
from heedful.errors import UserError
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.positions import Positions
from heedful.settings.stack import StackConfig
from heedful.text.special_tokens import SpecialTokens

Pooling = Literal["class_token", "mean"]


Cut = Literal["middle", "end"]


Head = Literal["masked", "classes", "tags", "none"]


@dataclass(frozen=True)
class VectorConfig:
    """How `embed` makes a vector of a text.

    If not given, `pooling` and `max_length`, which counts the special tokens too, are the model's own. From a longer
    text, the middle or the end is `cut` out.
    """

    pooling: Pooling | None = None
    normalize: bool = True
    max_length: int | None = None
    cut: Cut = "middle"
    lowercase: bool = False

    def __post_init__(self) -> None:
        require(4 if self.max_length is None else self.max_length, "vectors.max_length", 4)


@dataclass(frozen=True)
class EncoderOnlyConfig:
    """The settings of an encoder-only model; `max_length` includes the special tokens.

    The `head` answers with the token behind each mask, the class of a text, or the tag of each token. A whole text is
    represented by its class token or by the mean of all its tokens (`pooling`), after BERT's dense layer if there is
    a `pooler`, which heads that look at tokens do not use. With a `convolution` over that many tokens before the first
    block, short phrases are learned from fewer texts. In training, except for masked tokens, the share `token_dropout`
    of all tokens is replaced by the mask token. The vocabulary's size is that of the tokenizer, and None until there is
    one.
    """

    vocabulary_size: int | None = None
    width: int = 768
    max_length: int = 512
    positions: Positions = "learned"
    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    stack: StackConfig = field(default_factory=lambda: StackConfig(norm="pre"))
    pooling: Pooling = "mean"
    pooler: bool = False
    head: Head = "none"
    num_labels: int = 0
    convolution: int = 0
    token_dropout: float = 0.0
    vectors: VectorConfig = field(default_factory=VectorConfig)
    special_tokens: SpecialTokens = field(default_factory=SpecialTokens)

    def __post_init__(self) -> None:
        require(1 if self.vocabulary_size is None else self.vocabulary_size, "vocabulary_size", 1)
        require(self.width, "width", 1)
        require(self.max_length, "max_length", 4)
        require(self.token_dropout, "token_dropout", 0, 1)
        require(self.convolution, "convolution", 0)
        if self.convolution and self.convolution % 2 == 0:
            raise UserError(f"convolution is {self.convolution}, but must be odd: a token and its neighbours, or 0")
        require(self.num_labels, "num_labels", 1 if self.head in ("classes", "tags") else 0)

    def summary(self) -> str:
        """The settings that matter most, in words."""
        layers = f"{self.stack.num_layers} layers, width {self.width}, {self.stack.summary()}"
        return f"{layers}, {self.positions} positions, texts of up to {self.max_length:,} tokens"

    def vectors_summary(self) -> str:
        """How `embed` makes vectors, in words."""
        own = self.vectors
        what = "class token" if (own.pooling or self.pooling) == "class_token" else "mean of all tokens"
        length = ", length 1" if own.normalize else ""
        return f"{what}{length}, of up to {min(own.max_length or self.max_length, self.max_length):,} tokens"

    def activation_bytes(self) -> int:
        """Bytes that one token needs in training."""
        return self.stack.activation_bytes(self.width, self.max_length, 1, self.positions) + 4 * self.width * (
            self.convolution + 2
        )
