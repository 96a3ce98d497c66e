"""The families of models: for each the class of its settings and the class that builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful.models.decoder_only import DecoderOnly, DecoderOnlyConfig
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from heedful.models.vision import Vision, VisionConfig


@dataclass(frozen=True)
class Family:
    """A kind of model."""

    settings: type[Any]
    build: Callable[[Any], nn.Module]

    def build_without_memory(self, settings: Any) -> nn.Module:
        """The model on the meta device: its shapes and counts, and the check that they go together."""
        with torch.device("meta"):
            return self.build(settings)


FAMILIES = {
    "encoder_decoder": Family(EncoderDecoderConfig, EncoderDecoder),
    "decoder_only": Family(DecoderOnlyConfig, DecoderOnly),
    "vision": Family(VisionConfig, Vision),
}
