"""Learning a language from plain text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from heedful.errors import UserError
from heedful.model_folder import ModelConfig, model_card
from heedful.models.xlnet import XLNet
from heedful.prepared.folder import spool_folder
from heedful.prepared.progress import OnProgress
from heedful.tasks.job import Choice
from heedful.tasks.language_modeling.data import PreparedText, TextOptions, TokenizerKind, prepare_text
from heedful.tasks.language_modeling.permutation import PermutationTask
from heedful.tasks.language_modeling.task import LanguageTask
from heedful.tasks.starting_model import StartingModel, starting_model
from heedful.tasks.task import LearningSettings, Task
from heedful.text.documents import Documents, DocumentUnit
from heedful.text.encodings import check_encoding
from heedful.text.file_names import take_file_names
from heedful.text.text_files import expand_files
from heedful.text.tokenizer import Tokenizer

FAMILIES = ("decoder_only", "xlnet")


@dataclass(frozen=True)
class TextData:
    """The text to learn from, and the text to measure on; a document is a file, or a line.

    `from_model` is a model folder to go on from, whose vocabulary takes the place of `tokenizer`.
    """

    files: ClassVar = ("text", "valid_text", "from_model")
    read_from_names: ClassVar = ()

    text: tuple[str, ...] = ()
    valid_text: tuple[str, ...] = ()
    document: DocumentUnit = "file"
    tokenizer: TokenizerKind = "subwords"
    from_model: str | None = None
    encoding: str | None = None

    @property
    def start_folder(self) -> str | None:
        """The model folder that the run starts from."""
        return self.from_model

    def __post_init__(self) -> None:
        take_file_names(self, "text", "valid_text")

    @property
    def families(self) -> tuple[str, ...]:
        """The families that predict the next token; that of the model to start from, if there is one."""
        start = self._starting_model()
        return (start.config.family,) if start else FAMILIES

    def _starting_model(self) -> StartingModel | None:
        return starting_model(self.from_model, FAMILIES)

    def check(self) -> None:
        """Raise a UserError for files that are missing."""
        if not self.text:
            raise UserError("no data: give --text with one or more text files")
        check_encoding(self.encoding)
        expand_files(self.text + self.valid_text)

    def base_settings(self) -> dict[str, Any]:
        """The settings of the model to start from; else the preset's are good."""
        start = self._starting_model()
        return start.settings() if start else {}

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: OnProgress, expected_key: str | None
    ) -> PreparedLanguageJob:
        """Split and encode the text."""
        start = self._starting_model()
        tokenizer = start.tokenizer() if start else None
        if tokenizer and self.tokenizer == "characters" and not tokenizer.is_of_characters:
            raise UserError(f"the vocabulary of {self.from_model} is of subwords: leave --tokenizer characters out")
        options = TextOptions(self.tokenizer, model_settings.get("vocabulary_size"))
        with spool_folder(folder) as spool:
            train = Documents.from_files(self.text, self.document, spool / "train", self.encoding)
            valid = None
            if self.valid_text:
                valid = Documents.from_files(self.valid_text, self.document, spool / "valid", self.encoding)
            data = prepare_text(train, valid, folder, options, progress, expected_key, tokenizer)
        return PreparedLanguageJob(data, self.tokenizer, start)

    def start(self, model: nn.Module) -> None:
        """Copy the weights of the model to start from, if there is one."""
        start = self._starting_model()
        if start:
            start.copy_to(model)


@dataclass(frozen=True)
class PreparedLanguageJob:
    """Text that is ready to be learned from."""

    data: PreparedText
    kind: TokenizerKind
    starts_from: StartingModel | None

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.data.key

    @property
    def messages(self) -> list[str]:
        """What was changed, and what the run starts from, in words."""
        unknown = self.data.facts["unknown"]
        note = f"{unknown:,} characters of the held-out text do not occur in the training text"
        if self.starts_from:
            note = f"{unknown:,} tokens of the text are unknown to the vocabulary of {self.starts_from.folder}"
        start = [self.starts_from.message()] if self.starts_from else []
        return [*self.data.messages, *([note] if unknown else []), *start]

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
        if family == "xlnet":
            return "xlnet_tiny" if device.type == "cpu" or self.num_tokens < 100_000_000 else "xlnet_base"
        if device.type != "cpu" and self.num_tokens >= 100_000_000:
            return "gpt2_small"
        return "language_tiny" if self.num_tokens < 10_000_000 else "language_small"

    def complete(self, settings: Any) -> Any:
        """The settings with the vocabulary's size and special tokens."""
        if self.starts_from:
            return settings
        tokenizer = self.tokenizer
        return replace(settings, vocabulary_size=tokenizer.vocabulary_size, special_tokens=tokenizer.special_tokens)

    def choices(self) -> list[Choice]:
        """What is known of the data."""
        facts = self.data.facts
        kind = "characters of the text" if self.kind == "characters" else "byte-level BPE, by the amount of text"
        kind = f"of {self.starts_from.folder}" if self.starts_from else kind
        return [
            Choice("training text", f"{facts['characters']:,} characters", f"{self.num_tokens:,} tokens"),
            Choice("held-out text", f"{facts['valid_characters']:,} characters", facts["held_out_by"]),
            Choice("vocabulary", f"{self.tokenizer.vocabulary_size:,}", kind),
        ]

    def task(self, model: Any, learning: LearningSettings) -> Task[Any]:
        """Language modelling, as the training loop sees it: in the plain order, or in all of them."""
        task = LanguageTask(model, self.data, model.config.width, learning)
        return PermutationTask(model, task) if isinstance(model, XLNet) else task

    def model_config(self, family: str, settings: Any) -> ModelConfig:
        """What the model folder says of the model."""
        return ModelConfig(family, "language_model", settings)

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""
        return model_card(
            name,
            f"A language model, trained with heedful {config.heedful_version} on "
            f"{self.data.facts['characters']:,} characters of text.",
            f'heedful generate {name} "Once upon a time"',
            f"{config.model.summary()}; a vocabulary of {self.tokenizer.vocabulary_size:,}.",
            scores,
        )
