"""Learning labels: the class of a text, or the tag of each word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch

from heedful.errors import UserError
from heedful.model_folder import ModelConfig
from heedful.models.encoder_only import EncoderOnly
from heedful.prepared.folder import Expected, open_checked, spool_folder
from heedful.prepared.progress import OnProgress
from heedful.settings.embedding import EmbeddingConfig
from heedful.settings.encoder_only import EncoderOnlyConfig, Head
from heedful.tasks.card import trained_card
from heedful.tasks.encoding.task import EncoderTask
from heedful.tasks.job import Choice
from heedful.tasks.label_list import label_list
from heedful.tasks.labelling.data import LabelOptions, PreparedLabels, open_labels, prepare_labels
from heedful.tasks.labelling.files import LabelledFiles, LabelUnit
from heedful.tasks.labelling.task import LabelledTexts
from heedful.tasks.starting_model import StartingTextModel
from heedful.tasks.task import LearningSettings
from heedful.tasks.text_job import PreparedTextJob, TextJob
from heedful.text.encodings import check_encoding
from heedful.text.file_names import take_file_names
from heedful.text.row_options import RowOptions
from heedful.text.text_files import expand_files


class LabelKind(NamedTuple):
    """What a label belongs to, the head that predicts it, and the name of the task."""

    unit: LabelUnit
    head: Head
    task: str


@dataclass(frozen=True)
class LabelData(TextJob):
    """Files of labelled texts, the held-out ones, and the model folder to start from; see the two jobs below."""

    learned_by: ClassVar = ("encoder_only",)
    kind: ClassVar[LabelKind]
    files: ClassVar = ("data", "valid_data", "from_model")
    read_from_names: ClassVar = ()

    data: tuple[str, ...] = ()
    valid_data: tuple[str, ...] = ()
    from_model: str | None = None
    encoding: str | None = None
    columns: str | None = None
    header: bool | None = None
    delimiter: str | None = None

    def __post_init__(self) -> None:
        take_file_names(self, "data", "valid_data")

    def check(self) -> None:
        """Raise a UserError for files that are missing."""
        if not self.data:
            raise UserError("no data: give --data with one or more files of labelled text")
        check_encoding(self.encoding)
        self._row_options().check()
        expand_files(self.data + self.valid_data)

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: OnProgress, expected: Expected | None
    ) -> PreparedLabelJob:
        """Split and encode the texts."""
        start = self.starting_model()
        options = LabelOptions(
            model_settings.get("max_length", EncoderOnlyConfig.max_length),
            model_settings.get("vocabulary_size"),
            start.tokenizer() if start else None,
        )
        if checked := open_checked(folder, expected):
            data = open_labels(checked)
        else:
            with spool_folder(folder) as spool:
                train = self._labelled(self.data, spool / "train")
                valid = self._labelled(self.valid_data, spool / "valid") if self.valid_data else None
                data = prepare_labels(train, valid, folder, options, progress, expected)
        return PreparedLabelJob(data, self.kind, bool(self.valid_data), start)

    def _labelled(self, patterns: tuple[str, ...], spooled: Path) -> LabelledFiles:
        """The labelled files that these names stand for; piped input is copied to `spooled`."""
        return LabelledFiles.from_patterns(patterns, self.kind.unit, spooled, self.encoding, self._row_options())

    def _row_options(self) -> RowOptions:
        return RowOptions(self.columns, self.header, self.delimiter)


@dataclass(frozen=True)
class ClassifierData(LabelData):
    """Lines of `label TAB text`, or `label TAB text TAB second text`; or other tables with these columns."""

    kind: ClassVar[LabelKind] = LabelKind("text", "classes", "classification")
    head: ClassVar = kind.head


@dataclass(frozen=True)
class TaggerData(LabelData):
    """Lines of `word TAB tag`, with blank lines between sentences; or other tables with these columns."""

    kind: ClassVar[LabelKind] = LabelKind("word", "tags", "tagging")
    head: ClassVar = kind.head


@dataclass(frozen=True)
class PreparedLabelJob(PreparedTextJob):
    """Labelled texts that are ready to learn from."""

    data: PreparedLabels
    kind: LabelKind
    has_valid_files: bool
    starts_from: StartingTextModel | None

    @property
    def messages(self) -> list[str]:
        """What was changed or left out, and what the run starts from, in words."""
        start = self.starts_from
        return [*self.data.messages, *([start.message(self.kind.head)] if start else [])]

    @property
    def num_tokens(self) -> int:
        """Tokens of the training texts, special ones included."""
        return int(self.data.train.ids.lengths.sum())

    def preset(self, family: str, device: torch.device) -> str:
        """A size that suits the amount of text and the machine."""
        return "encoder_tiny" if device.type == "cpu" else "encoder_small"

    def complete(self, settings: EncoderOnlyConfig) -> EncoderOnlyConfig:
        """The settings with the vocabulary, the labels, and segments if a text can have two parts."""
        tokenizer, size = self.tokenizer, settings.vocabulary_size
        if self.starts_from is None:
            size = tokenizer.vocabulary_size
        if settings.token_dropout and tokenizer.special_tokens.mask is None:
            raise UserError(
                "model.token_dropout needs a vocabulary with a mask token, which this one does not have: set it to 0"
            )
        return replace(
            settings,
            vocabulary_size=size,
            embedding=self._embedding(settings.embedding),
            head=self.kind.head,
            num_labels=len(self.data.labels),
            special_tokens=tokenizer.special_tokens,
        )

    def _embedding(self, embedding: EmbeddingConfig) -> EmbeddingConfig:
        """The settings of the embedding, with segments if a text can have two parts."""
        start = self.starts_from
        if not (self.data.train.has_pairs or self.data.valid.has_pairs):
            return embedding
        if start and start.config.model.embedding.segments == 1:
            raise UserError(
                f"the data holds pairs of texts, and {start.folder} takes single texts (its embedding.segments is 1): "
                "start from another model, or write each pair as one text"
            )
        return replace(embedding, segments=max(2, embedding.segments))

    def choices(self) -> list[Choice]:
        """What is known about the data."""
        data = self.data
        what = "texts" if self.kind.unit == "text" else "sentences"
        held_out = "given files" if self.has_valid_files else "by content hash"
        pairs = "pairs" if data.train.has_only_pairs else "single texts, and pairs"
        return [
            Choice(f"training {what}", f"{len(data.train.ids):,}", f"{self.num_tokens:,} tokens"),
            Choice(f"held-out {what}", f"{len(data.valid.ids):,}", held_out),
            *([Choice("read as", pairs, "a second text in another column")] if data.train.has_pairs else []),
            Choice("labels", f"{len(data.labels)}", label_list(data.labels[:8])),
            self.vocabulary_choice(),
        ]

    def task(self, model: EncoderOnly, learning: LearningSettings) -> EncoderTask:
        """Classification or tagging, as the training loop sees it."""
        by_word = self.kind.unit == "word"
        train, valid = (
            LabelledTexts(examples, model.special_tokens, by_word) for examples in (self.data.train, self.data.valid)
        )
        return EncoderTask(model, train, valid, learning, self.data.labels.__getitem__)

    def model_config(self, family: str, settings: Any) -> ModelConfig:
        """What the model folder says about the model."""
        pairs_only = self.data.train.has_only_pairs
        return ModelConfig(family, self.kind.task, settings, labels=self.data.labels, pairs_only=pairs_only)

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""
        labels = label_list(config.labels[:20]) + (" ..." if len(config.labels) > 20 else "")
        learned_from = f"{len(self.data.train.ids):,} texts with {len(config.labels)} labels: {labels}"
        details = f"{config.model.summary()}; a vocabulary of {self.tokenizer.vocabulary_size:,}."
        return trained_card(config, name, f"A model for {self.kind.task}", learned_from, details, scores)
