"""What jobs on text share: the model that they may start from, and the vocabulary that comes with it."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from torch import nn

from heedful.config import merge
from heedful.settings.encoder_only import Head
from heedful.tasks.job import Choice
from heedful.tasks.starting_model import StartingTextModel
from heedful.text.tokenizer import Tokenizer

# How a vocabulary made from the training text comes about.
OWN_VOCABULARY = "byte-level BPE, by the amount of text"


class TextJob:
    """The part of a job on text that does not depend on what is learned; a base of the dataclasses of jobs.

    `learned_by` are the families that can learn it, the usual one first; `head` is that of an encoder; `own_settings`
    override those of the preset and of the model to start from.
    """

    learned_by: ClassVar[tuple[str, ...]]
    head: ClassVar[Head | None] = None
    own_settings: ClassVar[dict[str, Any]] = {}

    from_model: str | None

    @property
    def start_folder(self) -> str | None:
        """The model folder that the run starts from."""
        return self.from_model

    def starting_model(self) -> StartingTextModel | None:
        """The model that the run starts from, which must be of one of the families."""
        return StartingTextModel(self.from_model, self.learned_by) if self.from_model is not None else None

    @property
    def families(self) -> tuple[str, ...]:
        """The families that can learn it; only that of the model to start from, if there is one."""
        start = self.starting_model()
        return (start.config.family,) if start else self.learned_by

    def base_settings(self) -> dict[str, Any]:
        """The settings of the model to start from, overridden by the job's own."""
        start = self.starting_model()
        return merge(start.settings() if start else {}, self.own_settings)

    def start(self, model: nn.Module) -> None:
        """Copy the weights of the model to start from, if there is one."""
        start = self.starting_model()
        if start:
            start.copy_for(model, self.head)


class EncodedText(Protocol):
    """Text that was prepared: its key, and the vocabulary that it was encoded with."""

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary."""


class PreparedTextJob:
    """The part of a prepared job on text that does not depend on what is learned."""

    data: EncodedText
    starts_from: StartingTextModel | None

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.data.key

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary."""
        return self.data.tokenizer

    def vocabulary_choice(self, how: str = OWN_VOCABULARY) -> Choice:
        """The size of the vocabulary, and where it comes from: the model to start from, or else `how`."""
        reason = f"of {self.starts_from.folder}" if self.starts_from else how
        return Choice("vocabulary", f"{self.tokenizer.vocabulary_size:,}", reason)
