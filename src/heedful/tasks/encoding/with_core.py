"""What heedful's engine computes for an encoder's pipelines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heedful.core.model import CoreModel
from heedful.core.sequences import encode
from heedful.settings.encoder_only import Pooling
from heedful.tasks.encoding.seam import Rows

POOLINGS = {"class_token": 1, "mean": 2}


class CoreEncoder:
    """Computes framed texts, whose rows go through the model side by side, without padding."""

    def __init__(self, model: CoreModel) -> None:
        self.model = model

    def pooled(self, rows: Rows, pooling: Pooling | None, batch_size: int) -> list[NDArray[np.float32]]:
        """Each text as one vector, D."""
        chosen = POOLINGS[pooling or self.model.config.pooling]
        found = self._encode(rows, chosen, head=False, width=self.model.config.width)
        return [each[0] for each in found]

    def logits(self, rows: Rows, batch_size: int) -> list[NDArray[np.float32]]:
        """The head's answer to each text, V or T V."""
        config = self.model.config
        of_texts = config.head == "classes"
        widths = {"masked": config.vocabulary_size, "none": config.width}
        width, has_head = widths.get(config.head, config.num_labels), config.head != "none"
        found = self._encode(rows, POOLINGS[config.pooling] if of_texts else 0, head=has_head, width=width)
        return [each[0] for each in found] if of_texts else found

    def _encode(self, rows: Rows, pooling: int, *, head: bool, width: int) -> list[NDArray[np.float32]]:
        segments = None
        if self.model.config.embedding.segments:
            segments = [[int(place >= row.first_length) for place in range(len(row.ids))] for row in rows]
        return encode(self.model, [row.ids for row in rows], segments, pooling=pooling, head=head, width=width)
