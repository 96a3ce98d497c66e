"""Learning to translate: batches of sentence pairs, their loss, and what is measured on held-out pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.decoding.hypothesis import Request
from heedful.decoding.options import DecodingOptions
from heedful.decoding.run import decode
from heedful.decoding.seam import DecodingModel
from heedful.errors import not_numbers
from heedful.machine.devices import side_by_side
from heedful.machine.shared_work import by_first
from heedful.models.memory_plan import DecodingMemory
from heedful.prepared.batches import BucketedBatches
from heedful.prepared.mixture import Mixture
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.tasks.padding import pad_rows
from heedful.tasks.task import Indices, LearningSettings, Validation
from heedful.tasks.validation_signs import EXAMPLES_TO_READ, LONGEST_EXAMPLE, summarise_answers
from heedful.text.special_tokens import OWN_TOKENS, SpecialTokens

if TYPE_CHECKING:
    from heedful.tasks.translation.data import PreparedTranslation


class TranslationModel(DecodingModel, DecodingMemory, Protocol):
    """A model of any family that reads a source and predicts a target."""

    output: nn.Linear
    max_length: int

    def hidden(self, source_BS: Tensor, target_BT: Tensor, source_lengths_B: Tensor | None = None) -> Tensor:
        """What the output layer is applied to."""

    def __call__(self, source_BS: Tensor, target_BT: Tensor, source_lengths_B: Tensor | None = None) -> Tensor:
        """The logits B T V of the token that follows each target position."""


Ids = NDArray[np.integer]
# Enough to tell whether a model uses its source.
PAIRS_FOR_GAIN = 100


@dataclass(frozen=True)
class TranslationBatch:
    """Sentence pairs as tensors: the decoder reads `target_BT` and must predict `labels_BT`.

    `real_N` are the places of the labels that are not padding, found where the batch is made, so a step on another
    device need not wait for their number.
    """

    source_BS: Tensor
    source_lengths_B: Tensor
    target_BT: Tensor
    labels_BT: Tensor
    num_targets: int
    num_real: int
    special_tokens: SpecialTokens
    real_N: Tensor | None = None

    def __post_init__(self) -> None:
        if self.real_N is None:
            real_N = (self.labels_BT.flatten() != self.special_tokens.pad).nonzero()[:, 0]
            object.__setattr__(self, "real_N", real_N)

    @property
    def num_tokens(self) -> int:
        """Tokens on both sides, padding included."""
        return self.source_BS.numel() + self.target_BT.numel()

    def halves(self) -> list[TranslationBatch]:
        """The batch in two parts, or unsplit if it is of one pair."""
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
            real_N=None,
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
            real_N=None if self.real_N is None else self.real_N.to(device),
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
    hidden_BTD = model.hidden(batch.source_BS, batch.target_BT, batch.source_lengths_B)
    assert batch.real_N is not None
    hidden_ND = hidden_BTD.flatten(0, 1).index_select(0, batch.real_N)
    labels_N = batch.labels_BT.flatten().index_select(0, batch.real_N)
    return output_cross_entropy(model.output, hidden_ND, labels_N, label_smoothing)


def token_log_probabilities(model: TranslationModel, batch: TranslationBatch) -> list[Tensor]:
    """Per pair, the log-probability of each target token and of the end."""
    logits_BTV = model(batch.source_BS, batch.target_BT, batch.source_lengths_B)
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
    """How much higher the loss per target token is with other pairs' sources, or None if no batch has two pairs."""
    gain, seen, targets = 0.0, 0, 0
    for indices in batches:
        if len(indices) > 1 and seen < PAIRS_FOR_GAIN:
            batch = collate_pairs(pairs, indices, model)
            right, other = (translation_loss(model, each, 0.0)[1] for each in (batch, batch.with_other_sources()))
            gain += float(other - right)
            seen, targets = seen + len(indices), targets + batch.num_targets
    return gain / targets if seen else None


# Decoding is the slow part of a validation: BLEU is computed on at most this many pairs.
DECODED_PAIRS = 200
SHOWN_EXAMPLES = 3


class TranslationTask:
    """Sentence pairs, the model that learns from them, and its validation."""

    def __init__(
        self,
        model: TranslationModel,
        data: PreparedTranslation,
        settings: LearningSettings,
        mixture: Mixture | None = None,
    ) -> None:
        self.model, self.data, self.settings = model, data, settings
        train, valid = data.train, data.valid
        # One more than the ids, for the end token.
        self.batches = BucketedBatches(
            train.source_lengths + 1, train.target_lengths + 1, settings.tokens_per_batch, settings.seed, mixture
        )
        valid_lengths = valid.source_lengths + 1, valid.target_lengths + 1
        self.valid_batches = list(BucketedBatches(*valid_lengths, settings.tokens_per_batch, settings.seed).epoch(0))

    @property
    def width(self) -> int:
        """The model's width."""
        return self.model.output.in_features

    @property
    def unit(self) -> str:
        """Target tokens."""
        return "target tokens"

    @property
    def validation_tokens(self) -> int:
        """Tokens of the held-out pairs, and of translations, which models make far too long early in training."""
        valid = self.data.valid
        decoded = valid.source_lengths[:DECODED_PAIRS] + DecodingOptions().max_extra
        return int(valid.source_lengths.sum() + valid.target_lengths.sum() + decoded.sum())

    @property
    def largest_loss(self) -> float:
        """Four times the loss of a uniform guess."""
        return 4.0 * math.log(self.model.output.out_features)

    def epoch_batches(self, epoch: int) -> Sequence[Indices]:
        """The batches of an epoch."""
        return self.batches.epoch(epoch)

    def collate(self, indices: Indices) -> TranslationBatch:
        """Some pairs as tensors on the model's device."""
        return collate_pairs(self.data.train, indices, self.model)

    def loss(self, model: TranslationModel, batch: TranslationBatch) -> tuple[Tensor, Tensor]:
        """The summed loss, with and without label smoothing."""
        return translation_loss(model, batch, self.settings.label_smoothing)

    def validate(self) -> Validation:
        """The loss over all held-out pairs, BLEU over some of them, and a few translations."""
        import sacrebleu  # only now: translating does not need it

        valid = self.data.valid
        loss = mean_loss(self.model, valid, self.valid_batches)
        count = min(len(valid), DECODED_PAIRS)
        texts = by_first(lambda: self._translations(count))
        references = [valid.target_text(index) for index in range(count)]
        bleu = sacrebleu.BLEU().corpus_score(texts, [references]).score
        examples = [
            {"source": valid.source_text(index), "translation": texts[index], "reference": references[index]}
            for index in range(min(count, SHOWN_EXAMPLES))
        ]
        answers = summarise_answers(texts, references, str)
        gain = by_first(lambda: source_gain(self.model, valid, self.valid_batches))
        return Validation(loss, {"BLEU": bleu}, examples, answers, gain)

    def _translations(self, count: int) -> list[str]:
        """The first held-out sources, translated."""
        requests = [Request(index, self.data.valid.source(index).tolist()) for index in range(count)]
        texts = [""] * count
        for result in decode(self.model, requests, DecodingOptions(beam=1), max_sentences=64):
            texts[result.index] = self.data.tokenizer.decode(result.hypotheses[0].tokens)
        return texts

    def read_examples(self, model: TranslationModel) -> Iterator[None]:
        """Let a model read a few short held-out pairs, one at a time."""
        valid = self.data.valid
        short = np.flatnonzero(np.maximum(valid.source_lengths, valid.target_lengths) < LONGEST_EXAMPLE)
        for index in short[:EXAMPLES_TO_READ]:
            pair = collate_pairs(valid, np.array([index]), model)
            model.hidden(pair.source_BS, pair.target_BT, pair.source_lengths_B)
            yield
