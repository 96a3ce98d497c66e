"""What torch computes for an encoder's pipelines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heedful.layers.kv_cache import FEWEST_ROWS, padded_length, with_enough_rows
from heedful.machine.devices import side_by_side
from heedful.models.encoder_only import EncoderOnly
from heedful.models.evaluation_mode import evaluation_mode
from heedful.settings.encoder_only import Pooling
from heedful.tasks.encoding.seam import Rows
from heedful.text.framing import Framed

# With fewer texts, torch's kernels would take other paths, and give other last bits.
FEWEST_TEXTS = 4

# From ids B T, lengths B and segments B T to a result for each row.
Compute = Callable[[Tensor, Tensor, Tensor], Tensor]


class TorchEncoder:
    """Computes framed texts on all cores, in batches that each have one padded length."""

    def __init__(self, model: EncoderOnly) -> None:
        self.model = model

    def pooled(self, rows: Rows, pooling: Pooling | None, batch_size: int) -> list[NDArray[np.float32]]:
        """Each text as one vector, D."""

        def compute(ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor) -> Tensor:
            hidden_BTD = self.model.hidden(ids_BT, lengths_B, segments_BT, always_mask=True)
            return self.model.pooled(hidden_BTD, lengths_B, pooling)

        return self._run(rows, compute, batch_size)

    def logits(self, rows: Rows, batch_size: int) -> list[NDArray[np.float32]]:
        """The head's answer to each text, V or T V."""
        of_texts = self.model.config.head == "classes"

        def compute(ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor) -> Tensor:
            hidden_BTD = self.model.hidden(ids_BT, lengths_B, segments_BT, always_mask=True)
            if of_texts:  # a row for each text, where there was one for each token
                lengths_B = F.pad(lengths_B, (0, max(0, FEWEST_ROWS - len(lengths_B))), value=1)
                hidden_BTD = with_enough_rows(hidden_BTD)
            return self.model.answers(hidden_BTD, lengths_B)

        found = self._run(rows, compute, batch_size)
        return found if of_texts else [each[: len(row.ids)] for each, row in zip(found, rows, strict=True)]

    def _run(self, rows: Rows, compute: Compute, batch_size: int) -> list[NDArray[np.float32]]:
        """What `compute` gives for each row.

        Rows of one batch all have the same padded length, which depends only on their own lengths.
        """
        buckets: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            buckets.setdefault(self._padded_length(len(row.ids)), []).append(index)
        batches = [
            (length, indices[start : start + batch_size])
            for length, indices in buckets.items()
            for start in range(0, len(indices), batch_size)
        ]

        def work(batch: tuple[int, list[int]]) -> list[NDArray[np.float32]]:
            return self._compute([rows[index] for index in batch[1]], batch[0], compute)

        results: dict[int, NDArray[np.float32]] = {}
        with evaluation_mode(self.model):
            for (_, chosen), found in zip(batches, side_by_side(work, batches, self.model.device), strict=True):
                results.update(zip(chosen, found, strict=True))
        return [results[index] for index in range(len(rows))]

    def _padded_length(self, length: int) -> int:
        padded = padded_length(length)
        return padded if self.model.positions.extends else min(padded, self.model.max_length)

    def _compute(self, rows: list[Framed], length: int, compute: Compute) -> list[NDArray[np.float32]]:
        filled = rows + rows[:1] * (FEWEST_TEXTS - len(rows))
        ids = np.full((len(filled), length), self.model.special_tokens.pad)
        for target, row in zip(ids, filled, strict=True):
            target[: len(row.ids)] = row.ids
        lengths_B = torch.tensor([len(row.ids) for row in filled])
        first_B = torch.tensor([row.first_length for row in filled])
        places_T = torch.arange(length)
        # Padding is of the first segment, which may be the only one.
        segments_BT = ((places_T >= first_B[:, None]) & (places_T < lengths_B[:, None])).long()
        device = self.model.device
        result = compute(torch.from_numpy(ids).to(device), lengths_B.to(device), segments_BT.to(device))
        return list(result[: len(rows)].float().cpu().numpy())
