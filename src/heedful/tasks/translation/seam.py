"""What a translation pipeline requires of whatever computes, apart from decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from heedful.core.model import CoreModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PairComputation(Protocol):
    """Computes what a model makes of sources and given targets; all are ids without special tokens."""

    def token_scores(self, pairs: list[tuple[list[int], list[int]]]) -> list[list[float]]:
        """The log-probabilities of the tokens of each target, and of its end; a UserError if they are not finite."""

    def cross_weights(self, sources: list[list[int]], targets: list[list[int]]) -> list[NDArray[np.float32]]:
        """Per pair, the weights T S of cross-attention, from each target token to each source token, without the ends.

        They are a mean over all heads and layers.
        """


def pair_computation(network: Any) -> PairComputation:
    """What computes with a model."""
    if isinstance(network, CoreModel):
        from heedful.tasks.translation.with_core import CorePairs

        return CorePairs(network)
    from heedful.tasks.translation.with_torch import TorchPairs

    return TorchPairs(network)
