"""The families of models: for each the class of its settings and the class that builds it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful.errors import UserError
from heedful.models.decoder_only import DecoderOnly, DecoderOnlyConfig
from heedful.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from heedful.models.encoder_only import EncoderOnly, EncoderOnlyConfig
from heedful.models.recurrent import Recurrent, RecurrentConfig
from heedful.models.unfilled import Unfilled
from heedful.models.vision import Vision, VisionConfig
from heedful.models.weights_file import check_shapes
from heedful.models.xlnet import XLNet
from heedful.models.xlnet_config import XLNetConfig

# Numbers in tables of positions that any model may have; one with more weights may have as many as these.
MOST_COMPUTED = 2**22


@dataclass(frozen=True)
class Family:
    """A kind of model."""

    settings: type[Any]
    build: Callable[[Any], nn.Module]

    def build_without_memory(self, settings: Any) -> nn.Module:
        """The model on the meta device: its shapes and counts, and the check that they go together."""
        with torch.device("meta"):
            return self.build(settings)

    def check_weights(self, settings: Any, shapes: Mapping[str, Sequence[int]]) -> None:
        """Raise a UserError unless stored tensors of those shapes are the weights of such a model.

        This comes before memory is taken for it: settings may ask for a model of any size, a file has what it has.
        """
        for name, layers in _layers(settings):
            if layers > len(shapes):
                raise UserError(f"{name} is {layers:,}, but there are only {len(shapes):,} tensors")
        try:
            model = self.build_without_memory(settings)
        except UserError:
            raise
        except (RuntimeError, TypeError, ValueError, ArithmeticError) as error:  # such as sizes that torch cannot count
            raise UserError(f"the settings do not make a model: {str(error).splitlines()[0]}") from None
        check_shapes(model, shapes)
        stored = sum(math.prod(shape) for shape in shapes.values())
        computed = sum(buffer.numel() for buffer in model.buffers())
        if computed > max(stored, MOST_COMPUTED):
            raise UserError(
                f"tables of positions with {computed:,} numbers do not suit these weights: lower max_length"
            )

    def build_unfilled(self, settings: Any) -> nn.Module:
        """The model with parameters that hold anything at all: their values are to come from a file."""
        with Unfilled():
            return self.build(settings)


def _layers(settings: Any, where: str = "model") -> Iterator[tuple[str, int]]:
    """All numbers of layers in some settings, by their dotted names."""
    for each in dataclasses.fields(settings):
        value, name = getattr(settings, each.name), f"{where}.{each.name}"
        if each.name == "num_layers":
            yield name, value
        elif dataclasses.is_dataclass(value):
            yield from _layers(value, name)


FAMILIES = {
    "encoder_decoder": Family(EncoderDecoderConfig, EncoderDecoder),
    "decoder_only": Family(DecoderOnlyConfig, DecoderOnly),
    "encoder_only": Family(EncoderOnlyConfig, EncoderOnly),
    "recurrent": Family(RecurrentConfig, Recurrent),
    "xlnet": Family(XLNetConfig, XLNet),
    "vision": Family(VisionConfig, Vision),
}
