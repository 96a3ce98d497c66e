"""From files of labelled texts to token ids and label numbers, encoded once and reused."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.prepared.data_report import DataReport
from heedful.prepared.folder import Expected, Ingredients, PreparedFolder, prepare_once
from heedful.prepared.held_out import SHARE, content_digest, held_out_keys
from heedful.prepared.overlap import count_shared, tell_shared
from heedful.prepared.progress import OnProgress, ThrottledProgress
from heedful.prepared.ragged import Ragged, RaggedFiles, RaggedWriter, token_dtype
from heedful.prepared.small_data import warning_of_few
from heedful.tasks.labelling.files import LabelledExample, LabelledFiles, label_numbers
from heedful.tasks.labelling.survey_checks import (
    SpacedWords,
    single_example,
    single_label,
    warning_of_missing_blank_lines,
    warning_of_unseen,
)
from heedful.tasks.labelling.swapped_columns import warning_of_swapped_columns
from heedful.tasks.language_modeling.data import SAMPLED_CHARACTERS
from heedful.text.corpus_file import OnHit
from heedful.text.framing import frame, frame_words
from heedful.text.quoting_census import OnWarning
from heedful.text.special_tokens import SpecialTokens
from heedful.text.tokenizer import Tokenizer, choose_vocabulary_size

FORMAT = 1
# The label of tokens that have none: special tokens, and all subwords of a word but its first.
NO_LABEL = -1
# How many examples are encoded at a time.
_TOGETHER = 512


@dataclass(frozen=True)
class LabelledExamples:
    """Framed ids, how many of them belong to the first text, and one label per text or per token."""

    ids: Ragged
    labels: Ragged
    first_lengths: npt.NDArray[np.int32]

    @classmethod
    def open(cls, folder: Path, dtype: npt.DTypeLike) -> "LabelledExamples":
        """What `_LabelWriter` wrote."""
        first_lengths = np.load(folder / "first-lengths.npy")
        return cls(
            Ragged(RaggedFiles.beside(folder / "ids"), dtype),
            Ragged(RaggedFiles.beside(folder / "labels"), np.int32),
            first_lengths,
        )

    @property
    def has_pairs(self) -> bool:
        """Whether there is an example of two texts."""
        return bool((self.first_lengths < self.ids.lengths).any())

    @property
    def has_only_pairs(self) -> bool:
        """Whether every example is of two texts."""
        return bool((self.first_lengths < self.ids.lengths).all())


@dataclass(frozen=True)
class PreparedLabels:
    """Training and validation examples, with their labels' names and their tokenizer."""

    train: LabelledExamples
    valid: LabelledExamples
    labels: tuple[str, ...]
    tokenizer: Tokenizer
    folder: PreparedFolder

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.folder.key

    @property
    def messages(self) -> list[str]:
        """What was changed or left out, in words."""
        facts = self.folder.facts
        return [
            *self.folder.remarks,
            *facts["read_as"],
            *self.folder.hits_in_words("lines that were changed or left out", facts["hits"]),
            *warning_of_few(len(self.train.ids), "examples"),
            *facts.get("warnings", []),  # missing from data that an older version prepared
        ]


class LabelOptions(NamedTuple):
    """The choices in preparing labelled texts; a given tokenizer is used as it is."""

    max_length: int
    vocabulary_size: int | None = None
    tokenizer: Tokenizer | None = None


def prepare_labels(
    train: LabelledFiles,
    valid: LabelledFiles | None,
    folder: Path,
    options: LabelOptions,
    progress: OnProgress | None = None,
    expected: Expected | None = None,
) -> PreparedLabels:
    """Prepare labelled texts in a folder, or open what is there if it came from the same content and options."""
    throttled = ThrottledProgress(progress)
    corpora = [train] if valid is None else [train, valid]
    files = [file for corpus in corpora for file in corpus.files]
    choices = [FORMAT, train.unit, [len(each.files) for each in corpora], options.max_length, options.vocabulary_size]
    layouts = [layout.choices() for corpus in corpora for layout in corpus.unusual_layouts().values()]
    ingredients = Ingredients.of_text(files, choices, options.tokenizer, layouts)

    def make(partial: Path, report: DataReport) -> dict[str, Any]:
        return _LabelPreparation(partial, options, report, throttled).make(corpora)

    return open_labels(prepare_once(folder, ingredients, make, throttled, expected))


def open_labels(prepared: PreparedFolder) -> PreparedLabels:
    """The labelled texts in a folder that was prepared."""
    facts = prepared.facts
    tokenizer = Tokenizer.load(prepared.path / "tokenizer.json", SpecialTokens(**facts["special_tokens"]))
    dtype = token_dtype(tokenizer.vocabulary_size)
    train, valid = (LabelledExamples.open(prepared.path / part, dtype) for part in ("train", "valid"))
    return PreparedLabels(train, valid, tuple(facts["labels"]), tokenizer, prepared)


class _LabelPreparation:
    """One preparation, in the folder that receives its files."""

    def __init__(self, folder: Path, options: LabelOptions, report: DataReport, progress: ThrottledProgress) -> None:
        self.folder, self.options, self.report, self.progress = folder, options, report, progress

    def make(self, corpora: list[LabelledFiles]) -> dict[str, Any]:
        """Read the examples twice, first to survey them and then to encode them; return the facts."""
        keys, labels, characters, doubts = self._survey(corpora[0])
        if len(corpora) == 1 and len(set(keys.tolist())) < 2:
            raise single_example(corpora[0], len(keys), next(corpora[0].examples()), labels)
        held_out = set(held_out_keys(keys, SHARE).tolist()) if len(corpora) == 1 else set[int]()
        tokenizer = self.options.tokenizer or self._learn_tokenizer(corpora[0], held_out, characters)
        tokenizer.save(self.folder / "tokenizer.json")
        encoder = _Encoder(tokenizer, {label: number for number, label in enumerate(labels)}, self.options.max_length)
        with (
            closing(_LabelWriter(self.folder / "train", tokenizer.vocabulary_size)) as train,
            closing(_LabelWriter(self.folder / "valid", tokenizer.vocabulary_size)) as valid,
        ):
            seen = set[str]()
            for done, (example, rows) in enumerate(encoder.encode(corpora[0]), 1):
                self._add(valid if _key(example) in held_out else train, example, rows)
                seen.update(() if _key(example) in held_out else example.labels)
                self.progress("encoding", done, len(keys))
            for corpus in corpora[1:]:
                given: list[int] = []
                for example, rows in encoder.encode(corpus, self.report.hit, self.report.warn):
                    self._add(valid, example, rows)
                    given.append(_key(example))
                shared = count_shared(np.array(given, np.uint64), keys)
                tell_shared(self.report, shared, len(given), "texts" if corpus.unit == "text" else "sentences")
        for writer, purpose in ((train, "training"), (valid, "validation")):
            if not len(writer.ids):
                raise UserError(f"no example is left for {purpose}: {self.report.path} lists each line and its rule")
        return {
            "labels": labels,
            "characters": characters,
            "tokens": train.ids.numbers,
            "special_tokens": vars(tokenizer.special_tokens),
            "hits": dict(self.report.hits()),
            "read_as": [line for each in corpora for line in each.read_as()],
            "warnings": [
                *self.report.warnings,
                *doubts,
                *warning_of_unseen([label for label in labels if label not in seen]),
            ],
        }

    def _survey(self, corpus: LabelledFiles) -> tuple[npt.NDArray[np.uint64], list[str], int, list[str]]:
        """The examples' keys, the labels that occur, the number of characters, and warnings."""
        spaced = SpacedWords()
        keys: list[int] = []
        labels: set[str] = set()
        labelled = characters = 0
        for example in corpus.examples(self.report.hit, self.report.warn):
            keys.append(_key(example))
            labels.update(example.labels)
            labelled += len(example.labels)
            characters += sum(map(len, example.texts))
            if corpus.unit == "word":
                spaced.look(example)
            self.progress("reading", len(keys), None)
        if not keys:
            raise UserError(f"no example is left for training: {self.report.path} lists each line and its rule")
        if len(labels) < 2:
            raise single_label(corpus, len(keys), labels.pop())
        doubts = [
            *warning_of_swapped_columns(sorted(labels), labelled, corpus),
            *warning_of_missing_blank_lines(corpus, len(keys), labelled),
            *spaced.warning(),
        ]
        return np.array(keys, np.uint64), sorted(labels), characters, doubts

    def _learn_tokenizer(self, corpus: LabelledFiles, held_out: set[int], characters: int) -> Tokenizer:
        self.progress("learning subwords", 0, None)
        every = max(1, -(-characters // SAMPLED_CHARACTERS))
        texts = (
            text
            for number, example in enumerate(corpus.examples())
            if number % every == 0 and _key(example) not in held_out
            for text in (example.texts if corpus.unit == "text" else (" ".join(example.texts),))
        )
        size = self.options.vocabulary_size or choose_vocabulary_size(characters)
        return Tokenizer.train(texts, size, mask=True)

    def _add(self, writer: "_LabelWriter", example: LabelledExample, rows: "_Rows") -> None:
        writer.add(rows)
        if rows.shortened:
            self.report.hit("shortened", "changed", file=example.file, line=example.line)


class _Rows(NamedTuple):
    """One example as rows of (ids, first length, labels), and whether it was too long for the model."""

    rows: list[tuple[list[int], int, list[int]]]
    shortened: bool


class _Encoder:
    """Turns examples into framed ids and label numbers."""

    def __init__(self, tokenizer: Tokenizer, numbers: dict[str, int], max_length: int) -> None:
        self.tokenizer, self.numbers, self.max_length = tokenizer, numbers, max_length

    def encode(
        self, corpus: LabelledFiles, on_hit: OnHit | None = None, on_warning: OnWarning | None = None
    ) -> Iterator[tuple[LabelledExample, _Rows]]:
        """All examples with their rows, in order."""
        examples = corpus.examples(on_hit, on_warning)
        while block := list(islice(examples, _TOGETHER)):
            flat = iter(self.tokenizer.encode_batch([text for example in block for text in example.texts]))
            for example in block:
                ids = [next(flat) for _ in example.texts]
                labels = label_numbers(example, self.numbers)
                yield example, self._text(ids, labels) if corpus.unit == "text" else self._words(ids, labels)

    def _text(self, ids: list[list[int]], labels: list[int]) -> _Rows:
        framed = frame(ids, self.max_length, self.tokenizer.special_tokens)
        return _Rows([(framed.ids, framed.first_length, labels)], framed.shortened)

    def _words(self, ids: list[list[int]], labels: list[int]) -> _Rows:
        rows: list[tuple[list[int], int, list[int]]] = []
        given = iter(labels)
        for piece in frame_words(ids, self.max_length, self.tokenizer.special_tokens):
            row = [NO_LABEL] * len(piece.ids)
            for place in piece.begins:
                row[place] = next(given)
            rows.append((piece.ids, len(piece.ids), row))
        return _Rows(rows, len(rows) > 1)


class _LabelWriter:
    """Writes the rows of one part."""

    def __init__(self, folder: Path, vocabulary_size: int) -> None:
        folder.mkdir()
        self._folder = folder
        self.ids = RaggedWriter(RaggedFiles.beside(folder / "ids"), token_dtype(vocabulary_size))
        self._labels = RaggedWriter(RaggedFiles.beside(folder / "labels"), np.int32)
        self._first_lengths: list[int] = []

    def add(self, rows: _Rows) -> None:
        """Append the rows of one example."""
        for ids, first_length, labels in rows.rows:
            self.ids.add(ids)
            self._first_lengths.append(first_length)
            self._labels.add(labels)

    def close(self) -> None:
        """Complete the files."""
        self.ids.close()
        self._labels.close()
        np.save(self._folder / "first-lengths.npy", np.array(self._first_lengths, np.int32))


def _key(example: LabelledExample) -> int:
    """A hash of the texts alone: equal texts go the same way, whatever their labels."""
    content: Iterable[bytes] = (text.encode("utf-8", "replace") for text in example.texts)
    return int.from_bytes(content_digest(b"\t".join(content)), "little")
