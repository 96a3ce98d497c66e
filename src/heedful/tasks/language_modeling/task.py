"""Learning to predict the next token of a text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.decoding import DecodingOptions, Request, SamplingOptions, decode
from heedful.decoding.seam import DecodingModel
from heedful.machine.devices import side_by_side
from heedful.machine.shared_work import by_first
from heedful.prepared.mapped import ResidentPages
from heedful.tasks.cross_entropy import output_cross_entropy
from heedful.tasks.language_modeling.data import PreparedText
from heedful.tasks.language_modeling.windows import MixedTexts, windows_of_epoch
from heedful.tasks.task import Indices, LearningSettings, Validation
from heedful.tasks.validation_signs import EXAMPLES_TO_READ, LONGEST_EXAMPLE, Answers, summarise_answers

Ids = NDArray[np.integer]
# Tokens of the prompt, and of its continuation, in the example of a validation.
SHOWN_TOKENS = 30


class CausalModel(DecodingModel, Protocol):
    """A model that predicts each token from those before it."""

    output: nn.Linear
    max_length: int

    def hidden(self, ids_BT: Tensor, documents_BT: Tensor | None = None) -> Tensor:
        """What the output layer is applied to."""


@dataclass(frozen=True)
class LanguageBatch:
    """Windows of text: the model reads `ids_BT` and predicts `labels_BT`; `documents_BT` numbers several documents."""

    ids_BT: Tensor
    labels_BT: Tensor
    documents_BT: Tensor | None

    @property
    def num_targets(self) -> int:
        """Every token is a target."""
        return self.ids_BT.numel()

    num_real = num_tokens = num_targets

    def halves(self) -> list[LanguageBatch]:
        """The batch in two parts, or unsplit if it is of one window."""
        if len(self.ids_BT) == 1:
            return [self]
        documents = self.documents_BT
        numbers = (None, None) if documents is None else documents.chunk(2)
        parts = zip(self.ids_BT.chunk(2), self.labels_BT.chunk(2), numbers, strict=True)
        return [LanguageBatch(*part) for part in parts]

    def to(self, device: torch.device) -> LanguageBatch:
        """The batch on another device."""
        documents = None if self.documents_BT is None else self.documents_BT.to(device)
        return replace(self, ids_BT=self.ids_BT.to(device), labels_BT=self.labels_BT.to(device), documents_BT=documents)


def collate_windows(text: Ids, starts: Ids, length: int, end: int) -> LanguageBatch:
    """The windows of `length` tokens that begin at `starts` in a text."""
    rows_BX = torch.from_numpy(text[starts[:, None] + np.arange(length + 1)].astype(np.int64))
    ids_BT = rows_BX[:, :-1]
    # A document begins with the end token of the one before it.
    begins_BT = ids_BT == end
    documents_BT = begins_BT.cumsum(1) if bool(begins_BT[:, 1:].any()) else None
    return LanguageBatch(ids_BT, rows_BX[:, 1:], documents_BT)


def language_loss(model: CausalModel, batch: LanguageBatch, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss summed over all tokens, with and without label smoothing."""
    hidden_ND = model.hidden(batch.ids_BT, batch.documents_BT).flatten(0, 1)
    return output_cross_entropy(model.output, hidden_ND, batch.labels_BT.flatten(), label_smoothing)


def text_loss(model: CausalModel, text: Ids, tokens_per_batch: int) -> tuple[float, int]:
    """The summed loss of a text in windows that do not overlap, and the number of tokens that were predicted."""
    length = min(model.max_length, len(text) - 1)
    rows = max(1, tokens_per_batch // length)
    whole = np.arange(0, len(text) - length, length)
    batches = [(starts, length) for starts in np.split(whole, range(rows, len(whole), rows))]
    rest = len(text) - 1 - len(whole) * length
    if rest:  # the last window is shorter
        batches.append((np.array([len(whole) * length]), rest))

    def loss(batch: tuple[Ids, int]) -> float:
        windows = collate_windows(text, *batch, model.special_tokens.end)
        return float(language_loss(model, windows.to(model.device), 0.0)[1])

    return sum(side_by_side(loss, batches, model.device)), len(text) - 1


class LanguageTask:
    """A text, the model that learns from it, and its validation."""

    def __init__(
        self,
        model: CausalModel,
        data: PreparedText,
        width: int,
        settings: LearningSettings,
        mixed: MixedTexts | None = None,
    ) -> None:
        self.model, self.data, self.width, self.settings, self.mixed = model, data, width, settings, mixed
        self.train = data.train
        self.pages = ResidentPages(self.train)
        self.length = min(model.max_length, len(self.train) - 1)
        if mixed:
            mixed.counts(self.length)  # text that is too short is refused before a run begins

    @property
    def unit(self) -> str:
        """Tokens."""
        return "tokens"

    @property
    def validation_tokens(self) -> int:
        """Tokens of the held-out text."""
        return len(self.data.valid)

    @property
    def largest_loss(self) -> float:
        """Four times the loss of a uniform guess."""
        return 4.0 * math.log(self.model.output.out_features)

    def epoch_batches(self, epoch: int) -> Sequence[Indices]:
        """Windows that cover the text, with a different start in each epoch, in random order."""
        return windows_of_epoch(len(self.train), self.mixed, self.length, self.settings, epoch)

    def collate(self, indices: Indices) -> LanguageBatch:
        """Some windows as tensors on the model's device."""
        self.pages.read(len(indices))
        batch = collate_windows(self.train, indices, self.length, self.model.special_tokens.end)
        return batch.to(self.model.device)

    def loss(self, model: CausalModel, batch: LanguageBatch) -> tuple[Tensor, Tensor]:
        """The summed loss, with and without label smoothing."""
        return language_loss(model, batch, self.settings.label_smoothing)

    def validate(self) -> Validation:
        """The loss over all of the held-out text, and how the model would continue its beginning."""
        data, tokenizer = self.data, self.data.tokenizer
        total, tokens = text_loss(self.model, data.valid, self.settings.tokens_per_batch)
        prompt = data.valid[1 : 1 + min(SHOWN_TOKENS, self.model.max_length // 2)].tolist()
        end = self.model.special_tokens.end
        prompt = prompt[: prompt.index(end)] if end in prompt else prompt
        options = DecodingOptions(min_length=0, max_length=SHOWN_TOKENS, sampling=SamplingOptions(0.7))
        (found,) = by_first(lambda: list(decode(self.model, [Request(0, prompt)], options, 1)))
        example = {"held out": tokenizer.decode(prompt), "continued": tokenizer.decode(found.hypotheses[0].tokens)}
        bits = total / math.log(2) / data.facts["valid_bytes"]
        return Validation(total / tokens, {"bits per byte": bits}, [_on_one_line(example)], by_first(self._answers))

    @torch.inference_mode()
    def _answers(self) -> Answers:
        """The likeliest next tokens in a part of the held-out text."""
        windows = self._short_windows()
        found = self.model.output(self.model.hidden(windows.ids_BT, windows.documents_BT)).argmax(-1)
        tokens, labels = found.flatten().tolist(), windows.labels_BT.flatten().tolist()
        return summarise_answers(tokens, labels, lambda token: self.data.tokenizer.decode([token]))

    def _short_windows(self) -> LanguageBatch:
        valid = self.data.valid
        length = min(LONGEST_EXAMPLE, self.model.max_length, len(valid) - 1)
        starts = np.arange(0, len(valid) - length, length)[:EXAMPLES_TO_READ]
        return collate_windows(valid, starts, length, self.model.special_tokens.end).to(self.model.device)

    def read_examples(self, model: CausalModel) -> Iterator[None]:
        """Let a model read a few windows of the held-out text, one at a time."""
        windows = self._short_windows()
        for row in range(len(windows.ids_BT)):
            documents = windows.documents_BT
            model.hidden(windows.ids_BT[row : row + 1], None if documents is None else documents[row : row + 1])
            yield


def _on_one_line(example: dict[str, str]) -> dict[str, str]:
    return {name: " ".join(text.split()) for name, text in example.items()}
