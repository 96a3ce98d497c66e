"""Learning to translate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from heedful.errors import UserError
from heedful.model_folder import ModelConfig
from heedful.prepared.folder import Expected
from heedful.prepared.mixture import Mixture
from heedful.prepared.progress import OnProgress
from heedful.prepared.small_data import warning_of_few
from heedful.tasks.card import trained_card
from heedful.tasks.job import Choice
from heedful.tasks.mixed_corpora import MixedCorpora, mixture_choice
from heedful.tasks.starting_model import StartingTextModel
from heedful.tasks.task import LearningSettings
from heedful.tasks.text_job import OWN_VOCABULARY, PreparedTextJob, TextJob
from heedful.tasks.translation.corpus import ParallelCorpus
from heedful.tasks.translation.data import PreparedTranslation, PrepareOptions, prepare_translation
from heedful.tasks.translation.task import TranslationModel, TranslationTask
from heedful.text.encodings import check_encoding
from heedful.text.file_names import take_file_names
from heedful.text.row_options import RowOptions
from heedful.text.training_lines import measure_lines


@dataclass(frozen=True)
class TranslationData(TextJob):
    """The files to learn from: aligned source and target files, or table files; and the held-out ones.

    `from_model` is a model folder to start from, with its vocabulary. `encoding` is that of all files,
    `source_encoding` and `target_encoding` are those of one side of aligned files. `columns` (such as "2,1", or names),
    `header` and `delimiter` say how table files are laid out, if that should not be left to recognition. With
    `weights`, every name or pattern in `source` and its counterpart in `target` (or in `tsv`) is a separate corpus, and
    the corpora are mixed in these proportions.
    """

    learned_by: ClassVar = ("encoder_decoder", "recurrent")
    files: ClassVar = ("source", "target", "tsv", "valid_source", "valid_target", "valid_tsv", "from_model")
    read_from_names: ClassVar = ("source_language", "target_language")

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    tsv: tuple[str, ...] = ()
    valid_source: tuple[str, ...] = ()
    valid_target: tuple[str, ...] = ()
    valid_tsv: tuple[str, ...] = ()
    source_language: str | None = None
    target_language: str | None = None
    from_model: str | None = None
    encoding: str | None = None
    source_encoding: str | None = None
    target_encoding: str | None = None
    columns: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        take_file_names(self, "source", "target", "tsv", "valid_source", "valid_target", "valid_tsv")

    def check(self) -> None:
        """Raise a UserError for files that are missing or do not go together."""
        for side in ("", "source_", "target_"):
            check_encoding(getattr(self, f"{side}encoding"), f"--{side.replace('_', '-')}encoding")
        if (self.tsv or self.valid_tsv) and (self.source_encoding or self.target_encoding):
            raise UserError("--source-encoding and --target-encoding are for --source and --target: give --encoding")
        self._row_options().check()
        self._corpora()

    def prepare(
        self, folder: Path, model_settings: dict[str, Any], progress: OnProgress, expected: Expected | None
    ) -> PreparedTranslationJob:
        """Clean, split and encode the pairs."""
        corpus, valid = self._corpora()
        longest = model_settings.get("max_length", PrepareOptions.max_length)
        start = self.starting_model()
        tokenizer = start.tokenizer() if start else None
        options = PrepareOptions(None if start else model_settings.get("vocabulary_size"), longest)
        data = prepare_translation(corpus, valid, folder, options, progress, tokenizer, expected)
        languages = (corpus.source_language, corpus.target_language)
        if start and languages == (None, None):
            languages = (start.config.source_language, start.config.target_language)
        return PreparedTranslationJob(data, languages, valid is not None, start, self.mixed())

    def mixed(self) -> MixedCorpora | None:
        """The names and weights of the corpora, if several are to be mixed."""
        if self.weights is None:
            return None
        option, names = ("--tsv", self.tsv) if self.tsv else ("--source with its --target", self.source)
        return MixedCorpora(names, self.weights, option)

    def _corpora(self) -> tuple[ParallelCorpus, ParallelCorpus | None]:
        corpus = self._corpus("source", "target", "tsv")
        if corpus is None:
            raise UserError("no data: give --source and --target, or --tsv")
        if mixed := self.mixed():
            corpus = replace(corpus, groups_per_corpus=mixed.file_counts(self.target))
        valid = self._corpus("valid_source", "valid_target", "valid_tsv")
        if valid:  # a header may name its columns by the languages that the other files are named after
            valid = replace(
                valid,
                source_language=valid.source_language or corpus.source_language,
                target_language=valid.target_language or corpus.target_language,
            )
        return corpus, valid

    def _corpus(self, source: str, target: str, tsv: str) -> ParallelCorpus | None:
        """The corpus in the files that three fields name, or None if they name none."""
        sources, targets, tables = (getattr(self, name) for name in (source, target, tsv))
        languages = self.source_language, self.target_language
        flags = [f"--{name.replace('_', '-')}" for name in (source, target, tsv)]
        if tables and (sources or targets):
            raise UserError(f"give {flags[0]} and {flags[1]}, or {flags[2]}, not both")
        if tables:
            return ParallelCorpus.from_tsv(tables, *languages, self.encoding, self._row_options())
        if bool(sources) != bool(targets):
            raise UserError(f"{flags[0]} and {flags[1]} go together: one of them is missing")
        encodings = self.source_encoding or self.encoding, self.target_encoding or self.encoding
        return ParallelCorpus.from_files(sources, targets, *languages, encodings) if sources else None

    def _row_options(self) -> RowOptions:
        return RowOptions(self.columns, self.header, self.delimiter)


@dataclass(frozen=True)
class PreparedTranslationJob(PreparedTextJob):
    """Sentence pairs that are ready to learn from."""

    data: PreparedTranslation
    languages: tuple[str | None, str | None]
    has_valid_files: bool
    starts_from: StartingTextModel | None
    mixed: MixedCorpora | None = None

    def mixture(self, seed: int = 0) -> Mixture | None:
        """How often an epoch has each pair, if corpora are mixed."""
        return self.mixed.mixture(self.data.summary.pairs_per_corpus, seed) if self.mixed else None

    @property
    def messages(self) -> list[str]:
        """What was changed or left out, and what the run starts from, in words."""
        start = [self.starts_from.message()] if self.starts_from else []
        return [*self.data.messages, *start, *warning_of_few(len(self.data.train), "pairs")]

    @property
    def num_tokens(self) -> int:
        """Subwords of both sides, each line with its end token."""
        train = self.data.train
        return int(train.source_lengths.sum() + train.target_lengths.sum()) + 2 * len(train)

    def preset(self, family: str, device: torch.device) -> str:
        """A size that suits the amount of text and the machine."""
        if family == "recurrent":
            return "recurrent_tiny"
        tokens = self.num_tokens
        if device.type != "cpu" and tokens >= 50_000_000:
            return "translation_big" if tokens >= 2_000_000_000 else "translation_base"
        return "translation_tiny" if tokens < 3_000_000 else "translation_small"

    def complete(self, settings: Any) -> Any:
        """The settings with the vocabulary's size."""
        if self.starts_from:
            return settings
        return replace(settings, vocabulary_size=self.tokenizer.vocabulary_size)

    def choices(self) -> list[Choice]:
        """What is known about the data."""
        held_out = "given files" if self.has_valid_files else "by content hash"
        return [
            Choice("training pairs", f"{len(self.data.train):,}", f"{self.num_tokens:,} subwords"),
            *mixture_choice(self.mixture(), "pair"),
            Choice("held-out pairs", f"{len(self.data.valid):,}", held_out),
            self.vocabulary_choice(f"joint {OWN_VOCABULARY}"),
        ]

    def task(self, model: TranslationModel, learning: LearningSettings) -> TranslationTask:
        """Translation, as the training loop sees it."""
        return TranslationTask(model, self.data, learning, self.mixture(learning.seed))

    def model_config(self, family: str, settings: Any) -> ModelConfig:
        """What the model folder says about the model."""
        source, target = self.languages
        train = self.data.train
        lines = measure_lines(train.source_lengths, train.source_text, source)
        return ModelConfig(
            family, "translation", settings, source_language=source, target_language=target, training_lines=lines
        )

    def card(self, config: ModelConfig, name: str, scores: dict[str, float]) -> str:
        """A README.md for the model folder."""
        source, target = config.source_language or "source", config.target_language or "target"
        details = (
            f"A joint vocabulary of {self.tokenizer.vocabulary_size:,} subwords. Its training lines had "
            f"{config.training_lines}; longer texts are translated sentence by sentence. "
            "BLEU is with greedy search, on at most 200 held-out pairs."
        )
        if mixture := self.mixture():
            details += f" An epoch of its training had {mixture.in_words('pair')}."
        what, learned_from = f"A model that translates {source} to {target}", f"{len(self.data.train):,} sentence pairs"
        return trained_card(config, name, what, learned_from, details, scores)
