"""Learning a language from plain text by guessing hidden words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from heedful.config import merge
from heedful.errors import UserError
from heedful.model_folder import ModelConfig, model_card
from heedful.models.encoder_only import EncoderOnly, EncoderOnlyConfig
from heedful.prepared.progress import Progress
from heedful.tasks.encoding.task import EncoderTask
from heedful.tasks.job import Choice
from heedful.tasks.language_modeling.data import PreparedText, TextOptions, prepare_text
from heedful.tasks.masked_modeling.task import MaskedTexts, Masking
from heedful.tasks.starting_model import StartingModel, starting_model
from heedful.tasks.task import LearningSettings
from heedful.text.documents import Documents, DocumentUnit
from heedful.text.encodings import check_encoding
from heedful.text.file_names import take_file_names
from heedful.text.text_files import expand_files
from heedful.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class MaskedTextData:
    """The text to learn from, and the text to measure on; a document is a line, or a file.

    With `whole_words` all tokens of a word are hidden together. `from_model` is a model folder to go on from.
    """

    files: ClassVar = ("text", "valid_text", "from_model")
    read_from_names: ClassVar = ()

    text: tuple[str, ...] = ()
    valid_text: tuple[str, ...] = ()
    document: DocumentUnit = "line"
    whole_words: bool = False
    from_model: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        take_file_names(self, "text", "valid_text")

    @property
    def start_folder(self) -> str | None:
        """The model folder that the run starts from."""
        return self.from_model

    @property
    def families(self) -> tuple[str, ...]:
        """The families that read a whole text at once."""
        return ("encoder_only",)

    def check(self) -> None:
        """Raise a UserError for files that are missing."""
        if not self.text:
            raise UserError("no data: give --text with one or more text files")
        check_encoding(self.encoding)
        expand_files(self.text + self.valid_text)

    def base_settings(self) -> dict[str, Any]:
        """The settings of the model to start from; labels are not smoothed."""
        start = starting_model(self.from_model)
        return merge(start.settings() if start else {}, {"training": {"label_smoothing": 0.0}})

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: Progress, expected_key: str | None
    ) -> PreparedMaskedJob:
        """Split and encode the text."""
        start = starting_model(self.from_model)
        tokenizer = start.tokenizer() if start else None
        if tokenizer and tokenizer.special_tokens.mask is None:
            raise UserError(f"the vocabulary of {self.from_model} has no mask token")
        spooled = folder / "spooled"
        train = Documents.from_files(self.text, self.document, spooled / "train", self.encoding)
        valid = None
        if self.valid_text:
            valid = Documents.from_files(self.valid_text, self.document, spooled / "valid", self.encoding)
        # Lines begin as words after a space do, so that texts to be classified look the same.
        options = TextOptions("subwords", model_settings.get("vocabulary_size"), mask=True, whole_texts=False)
        data = prepare_text(train, valid, folder, options, progress, expected_key, tokenizer)
        return PreparedMaskedJob(data, self, start)

    def start(self, model: nn.Module) -> None:
        """Copy the weights of the model to start from, if there is one."""
        start = starting_model(self.from_model)
        if start:
            start.copy_to(model, "masked")


@dataclass(frozen=True)
class PreparedMaskedJob:
    """Text that is ready to be learned from."""

    data: PreparedText
    asked: MaskedTextData
    starts_from: StartingModel | None

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.data.key

    @property
    def messages(self) -> list[str]:
        """What was changed, and what the run starts from, in words."""
        return [*self.data.messages, *([self.starts_from.message("masked")] if self.starts_from else [])]

    @property
    def num_tokens(self) -> int:
        """Tokens of the training text."""
        return len(self.data.train)

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary."""
        return self.data.tokenizer

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
        """What is known of the data."""
        facts = self.data.facts
        held_out = "given files" if self.asked.valid_text else "the end of the text, or documents by their hash"
        vocabulary = f"of {self.starts_from.folder}" if self.starts_from else "byte-level BPE, by the amount of text"
        return [
            Choice("training text", f"{facts['characters']:,} characters", f"{self.num_tokens:,} tokens"),
            Choice("held-out text", f"{facts['valid_characters']:,} characters", held_out),
            Choice("vocabulary", f"{self.tokenizer.vocabulary_size:,}", vocabulary),
        ]

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
        """What the model folder says of the model."""
        return ModelConfig(family, "masked_language_model", settings)

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""
        return model_card(
            name,
            f"A masked language model, trained with heedful {config.heedful_version} on "
            f"{self.data.facts['characters']:,} characters of text.",
            f'heedful fill {name} "The [MASK] barks."',
            f"{config.model.summary()}; a vocabulary of {self.tokenizer.vocabulary_size:,}.",
            scores,
        )
