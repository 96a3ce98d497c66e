"""Learning a language from plain text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from heedful.errors import UserError
from heedful.model_folder import ModelConfig
from heedful.models.xlnet import XLNet
from heedful.prepared.folder import Expected, open_checked, spool_folder
from heedful.prepared.progress import OnProgress
from heedful.tasks.job import Choice
from heedful.tasks.language_modeling.data import PreparedText, TextOptions, TokenizerKind, open_text, prepare_text
from heedful.tasks.language_modeling.permutation import PermutationTask
from heedful.tasks.language_modeling.plain_text import PlainTextJob, PreparedPlainTextJob
from heedful.tasks.language_modeling.task import LanguageTask
from heedful.tasks.language_modeling.windows import MixedTexts
from heedful.tasks.mixed_corpora import MixedCorpora, mixture_choice
from heedful.tasks.starting_model import StartingTextModel
from heedful.tasks.task import LearningSettings, Task
from heedful.tasks.text_job import OWN_VOCABULARY
from heedful.text.document_unit import DocumentUnit


@dataclass(frozen=True)
class TextData(PlainTextJob):
    """The text to learn from, and the text to measure on; a document is a file, or a line.

    `from_model` is a model folder to start from, whose vocabulary replaces `tokenizer`. With `weights`, every name or
    pattern in `text` is a separate corpus, and the corpora are mixed in these proportions.
    """

    learned_by: ClassVar = ("decoder_only", "xlnet")

    text: tuple[str, ...] = ()
    valid_text: tuple[str, ...] = ()
    document: DocumentUnit = "file"
    tokenizer: TokenizerKind = "subwords"
    from_model: str | None = None
    encoding: str | None = None
    weights: tuple[float, ...] | None = None

    def check(self) -> None:
        """Raise a UserError for missing files, and for weights that do not match them."""
        super().check()
        self.mixed()

    def mixed(self) -> MixedCorpora | None:
        """The names and weights of the corpora, if several are to be mixed."""
        return None if self.weights is None else MixedCorpora(self.text, self.weights, "--text")

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: OnProgress, expected: Expected | None
    ) -> PreparedLanguageJob:
        """Split and encode the text."""
        start = self.starting_model()
        tokenizer = start.tokenizer() if start else None
        if tokenizer and self.tokenizer == "characters" and not tokenizer.is_of_characters:
            raise UserError(f"the vocabulary of {self.from_model} is of subwords: leave --tokenizer characters out")
        options, mixed = TextOptions(self.tokenizer, model_settings.get("vocabulary_size")), self.mixed()
        if checked := open_checked(folder, expected):
            data = open_text(checked)
        else:
            with spool_folder(folder) as spool:
                train, valid = self.documents(spool)
                train = replace(train, files_per_corpus=mixed.file_counts()) if mixed else train
                data = prepare_text(train, valid, folder, options, progress, expected, tokenizer)
        texts = MixedTexts(mixed, tuple(data.facts["ends"])) if mixed else None
        return PreparedLanguageJob(data, self.tokenizer, self.document, start, texts)


@dataclass(frozen=True)
class PreparedLanguageJob(PreparedPlainTextJob):
    """Text that is ready to learn from."""

    what: ClassVar = "A language model"

    data: PreparedText
    kind: TokenizerKind
    document: DocumentUnit
    starts_from: StartingTextModel | None
    mixed: MixedTexts | None = None

    @property
    def messages(self) -> list[str]:
        """What was changed, and what the run starts from, in words."""
        unknown = self.data.facts["unknown"]
        note = f"{unknown:,} characters of the held-out text do not occur in the training text"
        if self.starts_from:
            note = f"{unknown:,} tokens of the text are unknown to the vocabulary of {self.starts_from.folder}"
        start = [self.starts_from.message()] if self.starts_from else []
        return [*self.data.messages, *([note] if unknown else []), *start]

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
        """What is known about the data."""
        of_characters = self.kind == "characters"
        mixture = self.mixed.of_tokens() if self.mixed else None
        text, *others = self.text_choices(
            self.data.facts["held_out_by"], "characters of the text" if of_characters else OWN_VOCABULARY
        )
        return [text, *mixture_choice(mixture, "token"), *others]

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""
        mixed = f" An epoch of its training had {self.mixed.of_tokens().in_words('token')}." if self.mixed else ""
        return self.text_card(config, name, scores, mixed)

    def task(self, model: Any, learning: LearningSettings) -> Task[Any]:
        """Language modelling, as the training loop sees it: from left to right, or in any order."""
        task = LanguageTask(model, self.data, model.config.width, learning, self.mixed)
        return PermutationTask(model, task) if isinstance(model, XLNet) else task

    def model_config(self, family: str, settings: Any) -> ModelConfig:
        """What the model folder says about the model."""
        return ModelConfig(family, "language_model", settings, document=self.document)
