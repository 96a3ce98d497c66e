"""What torch computes for a translation pipeline, apart from decoding."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from heedful.inspection.attention.recording import RecordingAttend, recorders_by_kind, recording_view
from heedful.machine.devices import flushed_denormals, one_thread
from heedful.models.evaluation_mode import evaluation_mode
from heedful.tasks.translation.task import TranslationModel, collate, token_log_probabilities

MOST_PAIRS = 128
# The most logits in memory at once when given translations are scored.
SCORED_LOGITS = 2**24


class TorchPairs:
    """Computes pairs in batches."""

    def __init__(self, model: TranslationModel) -> None:
        self.model = model

    def token_scores(self, pairs: list[tuple[list[int], list[int]]]) -> list[list[float]]:
        """The log-probabilities of the tokens of each target, and of its end."""
        order = sorted(range(len(pairs)), key=lambda index: -len(pairs[index][1]))
        scores: dict[int, list[float]] = {}
        with evaluation_mode(self.model), one_thread(), flushed_denormals(), torch.inference_mode():
            while order:
                # The longest target comes first, and bounds the logits of its batch.
                row = (len(pairs[order[0]][1]) + 1) * self.model.output.out_features
                size = max(1, min(MOST_PAIRS, SCORED_LOGITS // row))
                chosen, order = order[:size], order[size:]
                source_rows, target_rows = ([np.array(pairs[i][side]) for i in chosen] for side in (0, 1))
                batch = collate(source_rows, target_rows, self.model.special_tokens)
                rows = token_log_probabilities(self.model, batch.to(self.model.device))
                scores.update({i: each.tolist() for i, each in zip(chosen, rows, strict=True)})
        return [scores[index] for index in range(len(pairs))]

    @cached_property
    def _recording(self) -> tuple[TranslationModel, list[RecordingAttend]]:
        """A view of the model that records, and the recorders of its cross-attention."""
        assert isinstance(self.model, nn.Module)
        view, _ = recording_view(self.model)
        return view, recorders_by_kind(view)["cross"]

    @torch.inference_mode()
    def cross_weights(self, sources: list[list[int]], targets: list[list[int]]) -> list[NDArray[np.float32]]:
        """Per pair, the mean weights T S of cross-attention."""
        view, recorders = self._recording
        batch = collate([np.array(ids) for ids in sources], [np.array(ids) for ids in targets], view.special_tokens)
        batch = batch.to(view.device)
        view.hidden(batch.source_BS, batch.target_BT, batch.source_lengths_B)
        recorded = [each.weights for each in recorders if each.weights is not None]
        # The position that predicts a token is the one before it; the input is already shifted by one.
        mean_BTS = torch.stack([weights_BHTS.mean(1) for weights_BHTS in recorded]).mean(0).cpu().numpy()
        return [
            mean_BTS[row, : len(target), : len(source)]
            for row, (source, target) in enumerate(zip(sources, targets, strict=True))
        ]
