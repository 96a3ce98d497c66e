"""The families of models: for each the class of its settings and the class that builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful.models.decoder_only import DecoderOnly, DecoderOnlyConfig
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from heedful.models.encoder_only import EncoderOnly, EncoderOnlyConfig
from heedful.models.recurrent import Recurrent, RecurrentConfig
from heedful.models.unfilled import Unfilled
from heedful.models.vision import Vision, VisionConfig
from heedful.models.xlnet import XLNet
from heedful.models.xlnet_config import XLNetConfig


@dataclass(frozen=True)
class Family:
    """A kind of model."""

    settings: type[Any]
    build: Callable[[Any], nn.Module]

    def build_without_memory(self, settings: Any) -> nn.Module:
        """The model on the meta device: its shapes and counts, and the check that they go together."""
        with torch.device("meta"):
            return self.build(settings)

    def build_unfilled(self, settings: Any) -> nn.Module:
        """The model with parameters that hold anything at all: their values are to come from a file."""
        with Unfilled():
            return self.build(settings)


FAMILIES = {
    "encoder_decoder": Family(EncoderDecoderConfig, EncoderDecoder),
    "decoder_only": Family(DecoderOnlyConfig, DecoderOnly),
    "encoder_only": Family(EncoderOnlyConfig, EncoderOnly),
    "recurrent": Family(RecurrentConfig, Recurrent),
    "xlnet": Family(XLNetConfig, XLNet),
    "vision": Family(VisionConfig, Vision),
}
