"""What a user asks for when asking for a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heedful.data.corpus import ParallelCorpus
from heedful.errors import UserError


@dataclass(frozen=True)
class TranslationData:
    """The files to learn from: aligned source and target files, or TSV files; the held-out ones likewise."""

    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    tsv: tuple[str, ...] = ()
    valid_source: tuple[str, ...] = ()
    valid_target: tuple[str, ...] = ()
    valid_tsv: tuple[str, ...] = ()
    source_language: str | None = None
    target_language: str | None = None


@dataclass(frozen=True)
class RunConfig:
    """A run as asked for: `settings` holds the tables "model" and "training", over those of the preset."""

    out: str
    data: TranslationData
    preset: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def training_corpus(data: TranslationData) -> ParallelCorpus:
    """The files to learn from."""
    corpus = _corpus(data, "source", "target", "tsv")
    if corpus is None:
        raise UserError("no data: give --source and --target, or --tsv")
    return corpus


def validation_corpus(data: TranslationData) -> ParallelCorpus | None:
    """The held-out files, if there are any."""
    return _corpus(data, "valid_source", "valid_target", "valid_tsv")


def _corpus(data: TranslationData, source: str, target: str, tsv: str) -> ParallelCorpus | None:
    """The corpus in the files that three fields of `data` name, or None if they name none."""
    sources, targets, tables = (getattr(data, name) for name in (source, target, tsv))
    languages = data.source_language, data.target_language
    flags = [f"--{name.replace('_', '-')}" for name in (source, target, tsv)]
    if tables and (sources or targets):
        raise UserError(f"give {flags[0]} and {flags[1]}, or {flags[2]}, not both")
    if tables:
        return ParallelCorpus.from_tsv(tables, *languages)
    if bool(sources) != bool(targets):
        raise UserError(f"{flags[0]} and {flags[1]} go together: one of them is missing")
    return ParallelCorpus.from_files(sources, targets, *languages) if sources else None
