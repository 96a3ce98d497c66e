"""Learning a language from plain text by guessing hidden words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from heedful.errors import UserError
from heedful.model_folder import ModelConfig
from heedful.models.encoder_only import EncoderOnly
from heedful.prepared.folder import Expected, open_checked, spool_folder
from heedful.prepared.progress import OnProgress
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.tasks.encoding.task import EncoderTask
from heedful.tasks.job import Choice
from heedful.tasks.language_modeling.data import PreparedText, TextOptions, open_text, prepare_text
from heedful.tasks.language_modeling.plain_text import PlainTextJob, PreparedPlainTextJob
from heedful.tasks.masked_modeling.task import MaskedTexts, Masking
from heedful.tasks.starting_model import StartingTextModel
from heedful.tasks.task import LearningSettings
from heedful.text.document_unit import DocumentUnit


@dataclass(frozen=True)
class MaskedTextData(PlainTextJob):
    """The text to learn from, and the text to measure on; a document is a line, or a file.

    With `whole_words` all tokens of a word are hidden together. `from_model` is a model folder to start from.
    """

    learned_by: ClassVar = ("encoder_only",)
    head: ClassVar = "masked"
    # As in BERT, labels are not smoothed.
    own_settings: ClassVar = {"training": {"label_smoothing": 0.0}}

    text: tuple[str, ...] = ()
    valid_text: tuple[str, ...] = ()
    document: DocumentUnit = "line"
    whole_words: bool = False
    from_model: str | None = None
    encoding: str | None = None

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: OnProgress, expected: Expected | None
    ) -> PreparedMaskedJob:
        """Split and encode the text."""
        start = self.starting_model()
        tokenizer = start.tokenizer() if start else None
        if tokenizer and tokenizer.special_tokens.mask is None:
            raise UserError(f"the vocabulary of {self.from_model} has no mask token")
        # A line begins like a word after a space, so that texts to be classified look the same.
        options = TextOptions("subwords", model_settings.get("vocabulary_size"), mask=True, whole_texts=False)
        if checked := open_checked(folder, expected):
            data = open_text(checked)
        else:
            with spool_folder(folder) as spool:
                train, valid = self.documents(spool)
                data = prepare_text(train, valid, folder, options, progress, expected, tokenizer)
        return PreparedMaskedJob(data, self, start)


@dataclass(frozen=True)
class PreparedMaskedJob(PreparedPlainTextJob):
    """Text that is ready to learn from."""

    what: ClassVar = "A masked language model"

    data: PreparedText
    asked: MaskedTextData
    starts_from: StartingTextModel | None

    @property
    def messages(self) -> list[str]:
        """What was changed, and what the run starts from, in words."""
        return [*self.data.messages, *([self.starts_from.message(self.asked.head)] if self.starts_from else [])]

    def preset(self, family: str, device: torch.device) -> str:
        """A size that suits the amount of text and the machine."""
        if device.type != "cpu" and self.num_tokens >= 100_000_000:
            return "bert_base"
        return "masked_tiny" if self.num_tokens < 10_000_000 else "masked_small"

    def complete(self, settings: EncoderOnlyConfig) -> EncoderOnlyConfig:
        """The settings with the vocabulary's size and special tokens."""
        size = settings.vocabulary_size if self.starts_from else self.tokenizer.vocabulary_size
        return replace(
            settings, vocabulary_size=size, head="masked", num_labels=0, special_tokens=self.tokenizer.special_tokens
        )

    def choices(self) -> list[Choice]:
        """What is known about the data."""
        given = "given files" if self.asked.valid_text else "the end of the text, or documents by their hash"
        return self.text_choices(given)

    def task(self, model: EncoderOnly, learning: LearningSettings) -> EncoderTask:
        """Guessing hidden tokens, as the training loop sees it."""
        tokenizer, special = self.tokenizer, model.special_tokens
        tokens = range(tokenizer.vocabulary_size)
        begins = None
        if self.asked.whole_words:
            begins = np.array([tokenizer.starts_with_space(token) for token in tokens])
        ordinary = np.array([token for token in tokens if token not in special.ids])
        masking = Masking(special, ordinary, learning.seed, begins)
        train, valid = (MaskedTexts(text, model.max_length, masking) for text in (self.data.train, self.data.valid))
        return EncoderTask(model, train, valid, learning, lambda token: tokenizer.decode([token]))

    def model_config(self, family: str, settings: Any) -> ModelConfig:
        """What the model folder says about the model."""
        return ModelConfig(family, "masked_language_model", settings, document=self.asked.document)
