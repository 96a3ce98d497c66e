"""The families of models: the class that builds each from its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from heedful.errors import UserError
from heedful.models.decoder_only import DecoderOnly
from heedful.models.encoder_decoder import EncoderDecoder
from heedful.models.encoder_only import EncoderOnly
from heedful.models.recurrent import Recurrent
from heedful.models.unfilled import Unfilled
from heedful.models.vision import Vision
from heedful.models.weights_file import check_shapes
from heedful.models.xlnet import XLNet
from heedful.settings.sizes import MOST_COMPUTED, check_sizes


@dataclass(frozen=True)
class Family:
    """A kind of model."""

    build: Callable[[Any], nn.Module]

    def build_without_memory(self, settings: Any) -> nn.Module:
        """The model on the meta device: its shapes and counts, and a check that they are consistent."""
        with torch.device("meta"):
            return self.build(settings)

    def build_unfilled(self, settings: Any, shapes: Mapping[str, Sequence[int]]) -> nn.Module:
        """The model with parameters that hold arbitrary values: the real ones will come from tensors of those shapes.

        Settings that ask for other shapes are a UserError, before memory is allocated for them.
        """
        stored = sum(math.prod(shape) for shape in shapes.values())
        check_sizes(settings, shapes)
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


# By the names of `FAMILY_SETTINGS` in `settings/families.py`.
FAMILIES = {
    "encoder_decoder": Family(EncoderDecoder),
    "decoder_only": Family(DecoderOnly),
    "encoder_only": Family(EncoderOnly),
    "recurrent": Family(Recurrent),
    "xlnet": Family(XLNet),
    "vision": Family(Vision),
}
