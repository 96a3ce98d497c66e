"""What the pipelines of an encoder ask of whatever computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from heedful.core.model import CoreModel
from heedful.settings.encoder_only import Pooling
from heedful.text.framing import Framed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Rows = Sequence[Framed]


class EncoderComputation(Protocol):
    """Computes framed texts, up to `batch_size` at a time; a result does not depend on what it is batched with."""

    def pooled(self, rows: Rows, pooling: Pooling | None, batch_size: int) -> list[NDArray[np.float32]]:
        """Each text as a whole, D: its class token or the mean of its tokens, if not given as the model says."""

    def logits(self, rows: Rows, batch_size: int) -> list[NDArray[np.float32]]:
        """The answer of the head to each text: V for classes, and T V, a row for each of its tokens, for others."""


def encoder_computation(network: Any) -> EncoderComputation:
    """What computes with a model."""
    if isinstance(network, CoreModel):
        from heedful.tasks.encoding.with_core import CoreEncoder

        return CoreEncoder(network)
    from heedful.tasks.encoding.with_torch import TorchEncoder

    return TorchEncoder(network)
