"""What decoding with relative attention holds between steps: slots, and the keys of all distances."""

from __future__ import annotations

from torch import Tensor

from heedful.models.causal_state import CausalState


class RelativeState(CausalState):
    """A causal state with the keys L H X K of distances 0 .. X - 1, which are the same for all rows and steps."""

    def __init__(
        self, shape: tuple[int, int, int, int], num_sentences: int, beam: int, length: int, distances_LHXK: Tensor
    ) -> None:
        super().__init__(shape, num_sentences, beam, length, distances_LHXK.device)
        self.distances_LHXK = distances_LHXK
