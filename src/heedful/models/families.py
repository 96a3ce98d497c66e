"""The families of models: the class that builds each of them from its settings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful.config import shown
from heedful.errors import UserError
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.models.recurrent import Recurrent
from heedful.models.unfilled import Unfilled
from heedful.models.vision import Vision
from heedful.models.weights_file import check_shapes
from heedful.models.xlnet import XLNet
from heedful.settings.positions import traits_of

# Numbers in a table of positions that any model may have; one with more weights may have as many as these.
MOST_COMPUTED = 2**23


@dataclass(frozen=True)
class Family:
    """A kind of model."""

    build: Callable[[Any], nn.Module]

    def build_without_memory(self, settings: Any) -> nn.Module:
        """The model on the meta device: its shapes and counts, and the check that they go together."""
        with torch.device("meta"):
            return self.build(settings)

    def build_unfilled(self, settings: Any, shapes: Mapping[str, Sequence[int]]) -> nn.Module:
        """The model with parameters that hold anything at all: their values are to come from tensors of those shapes.

        Settings that ask for anything else are a UserError, before memory is taken for what they ask.
        """
        stored = sum(math.prod(shape) for shape in shapes.values())
        for name, layers in _layers(settings):
            if layers > len(shapes):
                raise UserError(f"{name} is {layers:,}, but there are only {len(shapes):,} tensors")
        if _computed(settings) > max(stored, MOST_COMPUTED):
            raise UserError(f"model.max_length is {shown(settings.max_length)}, too many positions for these weights")
        try:
            # Twice, because the matrix of a tied output layer is made before it is replaced.
            with Unfilled(2 * stored + MOST_COMPUTED):
                model = self.build(settings)
        except UserError:
            raise
        except (RuntimeError, TypeError, ValueError, ArithmeticError) as error:  # such as sizes that torch cannot count
            raise UserError(f"the settings do not make a model: {str(error).splitlines()[0]}") from None
        check_shapes(model, shapes)
        return model


def _layers(settings: Any, where: str = "model") -> Iterator[tuple[str, int]]:
    """All numbers of layers in some settings, by their dotted names."""
    for each in dataclasses.fields(settings):
        value, name = getattr(settings, each.name), f"{where}.{each.name}"
        if each.name == "num_layers":
            yield name, value
        elif dataclasses.is_dataclass(value):
            yield from _layers(value, name)


def _computed(settings: Any) -> int:
    """Numbers in the table that a scheme of positions computes, at most."""
    positions = getattr(settings, "positions", None)
    return settings.max_length * settings.width if positions and traits_of(positions).computes_table else 0


# By the names of `FAMILY_SETTINGS` in `settings/families.py`.
FAMILIES = {
    "encoder_decoder": Family(EncoderDecoder),
    "decoder_only": Family(DecoderOnly),
    "encoder_only": Family(EncoderOnly),
    "recurrent": Family(Recurrent),
    "xlnet": Family(XLNet),
    "vision": Family(Vision),
}
