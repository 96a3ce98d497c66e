"""Learning to translate: batches of sentence pairs, their loss, and what is measured on held-out pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import not_numbers
from heedful.machine.devices import side_by_side
from heedful.tasks.cross_entropy import linear_cross_entropy
from heedful.tasks.padding import pad_rows
from heedful.tasks.translation.model import TranslationModel
from heedful.text.special_tokens import OWN_TOKENS, SpecialTokens

Ids = NDArray[np.integer]
# Enough to tell whether a model uses its source.
PAIRS_FOR_GAIN = 100


@dataclass(frozen=True)
class TranslationBatch:
    """Sentence pairs as tensors: the decoder reads `target_BT`, and is to answer `labels_BT`."""

    source_BS: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    labels_BT: Tensor
    num_targets: int
    num_real: int
    special_tokens: SpecialTokens

    @property
    def num_tokens(self) -> int:
        """Tokens on both sides, padding included."""
        return self.source_BS.numel() + self.target_BT.numel()

    def halves(self) -> list[TranslationBatch]:
        """The batch in two parts, or by itself if it is of one pair."""
        if len(self.source_BS) == 1:
            return [self]
        return [self._rows(rows) for rows in torch.arange(len(self.source_BS)).chunk(2)]

    def _rows(self, rows: Tensor) -> TranslationBatch:
        lengths, labels = self.source_lengths_B[rows], self.labels_BT[rows]
        source = self.source_BS[rows][:, : int(lengths.max())]
        targets_B = (labels != self.special_tokens.pad).sum(1)
        width, targets = int(targets_B.max()), int(targets_B.sum())
        return replace(
            self,
            source_BS=source,
            source_lengths_B=lengths,
            target_BT=self.target_BT[rows][:, :width],
            labels_BT=labels[:, :width],
            num_targets=targets,
            num_real=targets + int(lengths.sum()),
        )

    def with_other_sources(self) -> TranslationBatch:
        """Every target with the source of its neighbour."""
        return replace(self, source_BS=self.source_BS.roll(1, 0), source_lengths_B=self.source_lengths_B.roll(1, 0))

    def to(self, device: torch.device) -> TranslationBatch:
        """The batch on another device."""
        return replace(
            self,
            source_BS=self.source_BS.to(device),
            source_lengths_B=self.source_lengths_B.to(device),
            target_BT=self.target_BT.to(device),
            labels_BT=self.labels_BT.to(device),
        )


def collate(sources: list[Ids], targets: list[Ids], special: SpecialTokens = OWN_TOKENS) -> TranslationBatch:
    """Sentence pairs as a batch."""
    source_lengths = torch.tensor([len(row) + 1 for row in sources])
    num_targets = sum(len(row) + 1 for row in targets)
    return TranslationBatch(
        pad_rows(sources, special.pad, end=special.end),
        source_lengths,
        pad_rows(targets, special.pad, start=special.start),
        pad_rows(targets, special.pad, end=special.end),
        num_targets,
        num_targets + int(source_lengths.sum()),
        special,
    )


def translation_loss(model: TranslationModel, batch: TranslationBatch, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss summed over the real target tokens, with and without label smoothing."""
    hidden_BTD = model.hidden(batch.source_BS, batch.source_lengths_B, batch.target_BT)
    labels = batch.labels_BT.flatten()
    real = (labels != batch.special_tokens.pad).nonzero()[:, 0]
    hidden_ND = hidden_BTD.flatten(0, 1).index_select(0, real)
    output = model.output
    return linear_cross_entropy(hidden_ND, output.weight, labels[real], label_smoothing, output.bias)


def token_log_probabilities(model: TranslationModel, batch: TranslationBatch) -> list[Tensor]:
    """Per pair, the log-probability of each target token and of the end."""
    logits_BTV = model(batch.source_BS, batch.source_lengths_B, batch.target_BT)
    if not bool(logits_BTV.isfinite().all()):
        raise not_numbers("scores")
    labels_BT1 = batch.labels_BT[..., None]
    scores_BT = (logits_BTV.gather(2, labels_BT1) - logits_BTV.logsumexp(2, keepdim=True))[..., 0]
    pad = batch.special_tokens.pad
    return [row[labels != pad] for row, labels in zip(scores_BT, batch.labels_BT, strict=True)]


class Pairs(Protocol):
    """Sentence pairs as token ids."""

    def __len__(self) -> int: ...
    def source(self, index: int) -> Ids: ...
    def target(self, index: int) -> Ids: ...


def collate_pairs(pairs: Pairs, indices: NDArray[np.integer], model: TranslationModel) -> TranslationBatch:
    """Some of the pairs as a batch on the model's device."""
    batch = collate([pairs.source(i) for i in indices], [pairs.target(i) for i in indices], model.special_tokens)
    return batch.to(model.device)


@torch.inference_mode()
def mean_loss(model: TranslationModel, pairs: Pairs, batches: Iterable[NDArray[np.integer]]) -> float:
    """The loss per target token, without label smoothing, over all pairs."""

    def loss(indices: NDArray[np.integer]) -> tuple[float, int]:
        batch = collate_pairs(pairs, indices, model)
        return float(translation_loss(model, batch, 0.0)[1]), batch.num_targets

    losses, counts = zip(*side_by_side(loss, batches, model.device), strict=True)
    return sum(losses) / sum(counts)


@torch.inference_mode()
def source_gain(model: TranslationModel, pairs: Pairs, batches: Iterable[NDArray[np.integer]]) -> float | None:
    """How much higher the loss per target token is with the sources of other pairs, or None if there are no others."""
    gain, seen, targets = 0.0, 0, 0
    for indices in batches:
        if len(indices) > 1 and seen < PAIRS_FOR_GAIN:
            batch = collate_pairs(pairs, indices, model)
            right, other = (translation_loss(model, each, 0.0)[1] for each in (batch, batch.with_other_sources()))
            gain += float(other - right)
            seen, targets = seen + len(indices), targets + batch.num_targets
    return gain / targets if seen else None
