"""What jobs that learn a language from plain text share, whichever tokens they guess."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from heedful.errors import UserError
from heedful.model_folder import ModelConfig
from heedful.tasks.card import trained_card
from heedful.tasks.job import Choice
from heedful.tasks.language_modeling.data import PreparedText
from heedful.tasks.text_job import OWN_VOCABULARY, PreparedTextJob, TextJob
from heedful.text.document_unit import DocumentUnit
from heedful.text.documents import Documents
from heedful.text.encodings import check_encoding
from heedful.text.file_names import take_file_names
from heedful.text.text_files import expand_files


class PlainTextJob(TextJob):
    """A job on the text of some files, with others to measure on."""

    files: ClassVar = ("text", "valid_text", "from_model")
    read_from_names: ClassVar = ()

    text: tuple[str, ...]
    valid_text: tuple[str, ...]
    document: DocumentUnit
    encoding: str | None

    def __post_init__(self) -> None:
        take_file_names(self, "text", "valid_text")

    def check(self) -> None:
        """Raise a UserError for files that are missing."""
        if not self.text:
            raise UserError("no data: give --text with one or more text files")
        check_encoding(self.encoding)
        expand_files(self.text + self.valid_text)

    def documents(self, spooled: Path) -> tuple[Documents, Documents | None]:
        """The documents to learn from, and those to measure on, if given; piped input is copied to `spooled`."""
        train = Documents.from_files(self.text, self.document, spooled / "train", self.encoding)
        if not self.valid_text:
            return train, None
        return train, Documents.from_files(self.valid_text, self.document, spooled / "valid", self.encoding)


class PreparedPlainTextJob(PreparedTextJob):
    """Plain text that is ready to learn from; `what` names the model that learns from it."""

    what: ClassVar[str]

    data: PreparedText

    @property
    def num_tokens(self) -> int:
        """Tokens of the training text."""
        return len(self.data.train)

    def text_choices(self, held_out_by: str, vocabulary: str = OWN_VOCABULARY) -> list[Choice]:
        """What is known about the text."""
        facts = self.data.facts
        return [
            Choice("training text", f"{facts['characters']:,} characters", f"{self.num_tokens:,} tokens"),
            Choice("held-out text", f"{facts['valid_characters']:,} characters", held_out_by),
            self.vocabulary_choice(vocabulary),
        ]

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""
        return self.text_card(config, name, scores)

    def text_card(self, config: ModelConfig, name: str, scores: dict[str, float], more: str = "") -> str:
        """The same, with `more` added to the details."""
        learned_from = f"{self.data.facts['characters']:,} characters of text"
        details = f"{config.model.summary()}; a vocabulary of {self.tokenizer.vocabulary_size:,}.{more}"
        return trained_card(config, name, self.what, learned_from, details, scores)
