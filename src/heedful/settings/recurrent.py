"""The settings of a recurrent model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from heedful.config import require
from heedful.errors import UserError
from heedful.text.special_tokens import SpecialTokens

CellName = Literal["lstm", "gru"]


GlobalScoring = Literal["additive", "general", "dot"]


@dataclass(frozen=True)
class RecurrentStackConfig:
    """The settings of a stack of recurrent layers; dropout comes after each, and all but the first are residual."""

    num_layers: int = 2
    dropout: float = 0.2

    def __post_init__(self) -> None:
        require(self.num_layers, "num_layers", 1)
        require(self.dropout, "dropout", 0, 1)


@dataclass(frozen=True)
class RecurrentConfig:
    """The settings of a recurrent model; `width` is that of embeddings and output, `hidden_width` that of states.

    `max_length` is that of the longest sequence in training. The vocabulary's size is that of the tokenizer, and
    None until there is one.
    """

    vocabulary_size: int | None = None
    width: int = 128
    hidden_width: int = 256
    max_length: int = 256
    cell: CellName = "lstm"
    attention: GlobalScoring = "additive"
    shared_embeddings: bool = True
    tied_output: bool = True
    encoder: RecurrentStackConfig = field(default_factory=RecurrentStackConfig)
    decoder: RecurrentStackConfig = field(default_factory=RecurrentStackConfig)
    special_tokens: SpecialTokens = field(default_factory=SpecialTokens)

    def __post_init__(self) -> None:
        require(1 if self.vocabulary_size is None else self.vocabulary_size, "vocabulary_size", 1)
        require(self.width, "width", 1)
        require(self.hidden_width, "hidden_width", 2)
        require(self.max_length, "max_length", 1)
        if self.hidden_width % 2:
            raise UserError(f"hidden_width is {self.hidden_width}, but must be even: each direction has half of it")

    def summary(self) -> str:
        """The settings that matter most, in words."""
        layers = f"{self.encoder.num_layers}+{self.decoder.num_layers} {self.cell.upper()} layers"
        widths = f"width {self.width}, states {self.hidden_width}"
        return f"{layers}, {widths}, dropout {self.decoder.dropout}, {self.attention} attention"

    def activation_bytes(self) -> int:
        """Bytes that one token needs in training; it goes through the encoder or the decoder: the larger counts.

        Counted per layer: its input, the gates and states that the kernel keeps, its output and dropout (about 32
        widths); for a target token its scores over the source, masked, as weights, and their mask.
        """
        layer = 32 * self.hidden_width
        decoder = self.decoder.num_layers * layer + 4 * self.max_length + 8 * (self.hidden_width + self.width)
        return 4 * max(self.encoder.num_layers * layer + 4 * self.width, decoder)
