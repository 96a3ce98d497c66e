"""What torch computes for a language model's pipeline, apart from decoding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heedful.machine.devices import flushed_denormals
from heedful.models.evaluation_mode import evaluation_mode
from heedful.tasks.language_modeling.task import CausalModel, text_loss

TOKENS_PER_BATCH = 8192


class TorchText:
    """Computes windows of a text side by side."""

    def __init__(self, model: CausalModel) -> None:
        self.model = model

    def loss(self, ids: NDArray[np.integer]) -> float:
        """The summed loss of all ids but the first."""
        with evaluation_mode(self.model), flushed_denormals():
            return text_loss(self.model, ids, TOKENS_PER_BATCH)[0]
