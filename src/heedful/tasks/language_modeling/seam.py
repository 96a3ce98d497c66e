"""What a language model's pipeline requires of whatever computes, apart from decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from heedful.core.model import CoreModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TextComputation(Protocol):
    """Computes how well a model predicts a text."""

    def loss(self, ids: NDArray[np.integer]) -> float:
        """The summed loss, in nats, of all ids but the first, in windows of the model's context without overlap."""


def text_computation(network: Any) -> TextComputation:
    """What computes with a model."""
    if isinstance(network, CoreModel):
        from heedful.tasks.language_modeling.with_core import CoreText

        return CoreText(network)
    from heedful.tasks.language_modeling.with_torch import TorchText

    return TorchText(network)
