"""What an encoder's pipelines require of whatever computes."""

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
        """Each text as one vector, D: its class token or the mean of its tokens; by default as the model says."""

    def logits(self, rows: Rows, batch_size: int) -> list[NDArray[np.float32]]:
        """The head's answer to each text: V for classes; for others T V, a row for each of its tokens."""


def encoder_computation(network: Any) -> EncoderComputation:
    """What computes with a model."""
    if isinstance(network, CoreModel):
        from heedful.tasks.encoding.with_core import CoreEncoder

        return CoreEncoder(network)
    from heedful.tasks.encoding.with_torch import TorchEncoder

    return TorchEncoder(network)
