"""What translation asks of a model."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from heedful.decoding.seam import DecodingModel
from heedful.models.memory_plan import DecodingMemory


class TranslationModel(DecodingModel, DecodingMemory, Protocol):
    """A model of any family that reads a source and predicts a target."""

    output: nn.Linear
    max_length: int

    def hidden(self, source_BS: Tensor, source_lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        """What the output layer is applied to."""

    def __call__(self, source_BS: Tensor, source_lengths_B: Tensor, target_BT: Tensor) -> Tensor:
        """The logits B T V of the token that follows each target position."""
