"""Batches of texts for an encoder, and the loss of whatever head it has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.models.encoder_only import EncoderOnly
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.tasks.labelling.data import NO_LABEL


@dataclass(frozen=True)
class EncoderBatch:
    """Texts as tensors; `labels` holds one number per text (B), or one per token (B T), which may be NO_LABEL."""

    ids_BT: Tensor
    lengths_B: Tensor
    segments_BT: Tensor | None
    labels: Tensor
    num_targets: int
    num_real: int

    @property
    def num_tokens(self) -> int:
        """All tokens, with padding."""
        return self.ids_BT.numel()

    def halves(self) -> list[EncoderBatch]:
        """The batch in two parts, or unsplit if it is of one text."""
        if len(self.ids_BT) == 1:
            return [self]
        return [self._rows(rows) for rows in torch.arange(len(self.ids_BT)).chunk(2)]

    def _rows(self, rows: Tensor) -> EncoderBatch:
        lengths = self.lengths_B[rows]
        longest = int(lengths.max())
        segments = None if self.segments_BT is None else self.segments_BT[rows, :longest]
        labels = self.labels[rows] if self.labels.dim() == 1 else self.labels[rows, :longest]
        return make_batch(self.ids_BT[rows, :longest], lengths, segments, labels)

    def to(self, device: torch.device) -> EncoderBatch:
        """The batch on another device."""
        segments = None if self.segments_BT is None else self.segments_BT.to(device)
        return replace(
            self,
            ids_BT=self.ids_BT.to(device),
            lengths_B=self.lengths_B.to(device),
            segments_BT=segments,
            labels=self.labels.to(device),
        )


def make_batch(ids_BT: Tensor, lengths_B: Tensor, segments_BT: Tensor | None, labels: Tensor) -> EncoderBatch:
    """A batch with its counts."""
    return EncoderBatch(ids_BT, lengths_B, segments_BT, labels, int((labels != NO_LABEL).sum()), int(lengths_B.sum()))


def label_features(model: EncoderOnly, batch: EncoderBatch) -> tuple[Tensor, Tensor]:
    """What the output layer is applied to where there is a label, N D, and those labels, N."""
    hidden_BTD = model.hidden(batch.ids_BT, batch.lengths_B, batch.segments_BT)
    features, labels_N = model.features(hidden_BTD, batch.lengths_B), batch.labels.flatten()
    places_N = (labels_N != NO_LABEL).nonzero()[:, 0]
    features_ND = features.flatten(0, -2).index_select(0, places_N)
    return model.transform(features_ND), labels_N[places_N]


def encoder_loss(model: EncoderOnly, batch: EncoderBatch, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss summed over all labels, with and without label smoothing."""
    features_ND, labels_N = label_features(model, batch)
    return output_cross_entropy(model.output, features_ND, labels_N, label_smoothing)
