"""From text files to one long row of token ids, with every document between two end tokens."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.prepared.data_report import DataReport
from heedful.prepared.folder import Expected, Ingredients, PreparedFolder, prepare_once
from heedful.prepared.held_out import HoldOut, held_out_text, no_text
from heedful.prepared.mapped import mapped_numbers
from heedful.prepared.overlap import SharedDocuments
from heedful.prepared.progress import OnProgress, ThrottledProgress
from heedful.prepared.ragged import token_dtype
from heedful.prepared.small_data import FEW_CHARACTERS, warning_of_few
from heedful.text.documents import Documents, TextPart
from heedful.text.special_tokens import SpecialTokens
from heedful.text.tokenizer import Tokenizer, choose_vocabulary_size

TokenizerKind = Literal["subwords", "characters"]
Ids = npt.NDArray[np.unsignedinteger[Any]]

FORMAT = 1
# How many characters the subwords are learned from, taken evenly from all of the text.
SAMPLED_CHARACTERS = 20_000_000
# How many characters are encoded at a time.
_TOGETHER = 1 << 20


@dataclass(frozen=True)
class TextOptions:
    """The choices in preparing text; if no vocabulary size is given, it is chosen by the amount of text."""

    tokenizer: TokenizerKind = "subwords"
    vocabulary_size: int | None = None
    mask: bool = False
    whole_texts: bool = True


@dataclass(frozen=True)
class PreparedText:
    """Training and validation text as token ids, with their tokenizer."""

    train: Ids
    valid: Ids
    tokenizer: Tokenizer
    folder: PreparedFolder

    @property
    def key(self) -> str:
        """Changes with the contents of the files, and with how they were prepared."""
        return self.folder.key

    @property
    def facts(self) -> dict[str, Any]:
        """What is known about the text."""
        return self.folder.facts

    @property
    def messages(self) -> list[str]:
        """What was changed, in words."""
        return [
            *self.folder.remarks,
            *self.folder.hits_in_words("lines that were changed", self.facts["hits"]),
            *warning_of_few(self.facts["characters"], "characters of text", FEW_CHARACTERS),
            *self.facts.get("warnings", []),
        ]


def prepare_text(
    train: Documents,
    valid: Documents | None,
    folder: Path,
    options: TextOptions,
    progress: OnProgress | None = None,
    expected: Expected | None = None,
    tokenizer: Tokenizer | None = None,
) -> PreparedText:
    """Prepare text in a folder, or open what is there if it came from the same content and options."""
    throttled = ThrottledProgress(progress)
    corpora = [train] if valid is None else [train, valid]
    files = [file for corpus in corpora for file in corpus.files]
    choices: list[object] = [FORMAT, train.unit, [len(each.files) for each in corpora], vars(options)]
    if train.files_per_corpus:
        choices.append(train.files_per_corpus)

    def make(partial: Path, report: DataReport) -> dict[str, Any]:
        return _make(corpora, partial, report, options, throttled, tokenizer)

    ingredients = Ingredients.of_text(files, choices, tokenizer)
    return open_text(prepare_once(folder, ingredients, make, throttled, expected))


def open_text(prepared: PreparedFolder) -> PreparedText:
    """The text in a folder that was prepared."""
    special = SpecialTokens(**prepared.facts["special_tokens"])
    tokenizer = Tokenizer.load(prepared.path / "tokenizer.json", special)
    dtype = token_dtype(tokenizer.vocabulary_size)
    train, valid = (mapped_numbers(prepared.path / f"{part}.bin", dtype) for part in ("train", "valid"))
    return PreparedText(train, valid, tokenizer, prepared)


def _make(
    corpora: list[Documents],
    partial: Path,
    report: DataReport,
    options: TextOptions,
    progress: ThrottledProgress,
    tokenizer: Tokenizer | None,
) -> dict[str, Any]:
    splits = [_split(each, report, progress, hold_out=len(corpora) == 1) for each in corpora[0].corpora()]
    characters = sum(each.characters for each in splits)
    if characters == 0:
        raise UserError("the text files are empty: there is nothing to learn from")
    parts = (part for each in splits for part in each.parts())
    tokenizer = tokenizer or _train_tokenizer(parts, characters, options, progress)
    tokenizer.save(partial / "tokenizer.json")
    sizes = {name: _TokenWriter(partial / f"{name}.bin", tokenizer) for name in ("train", "valid")}
    ends: list[int] = []
    shared = [SharedDocuments(corpus.parts(None)) for corpus in corpora[1:]]
    for split in splits:
        for part, held_out in split.parts():
            for documents in shared:
                documents.look(part)
            sizes["valid" if held_out else "train"].add(part)
            progress("encoding", sum(each.characters for each in sizes.values()), characters)
        for writer in sizes.values():
            writer.end()
        ends.append(sizes["train"].tokens)
    for corpus, documents in zip(corpora[1:], shared, strict=True):
        documents.tell(report)
        for part in corpus.parts(report.hit):
            sizes["valid"].add(part)
            progress("encoding validation", sizes["valid"].characters, None)
    for name, writer in sizes.items():
        writer.close()
        if writer.tokens < 3:
            raise UserError(f"no text is left for {'training' if name == 'train' else 'validation'}: give more of it")
    return {
        "documents": sum(each.documents for each in splits),
        "held_out_by": " or ".join(dict.fromkeys(each.held_out_by for each in splits)),
        "characters": sizes["train"].characters,
        "valid_characters": sizes["valid"].characters,
        "valid_bytes": sizes["valid"].bytes,
        "tokens": sizes["train"].tokens,
        "unknown": sum(each.unknown for each in sizes.values()),
        "special_tokens": vars(tokenizer.special_tokens),
        "hits": dict(report.hits()),
        **({"warnings": report.warnings} if report.warnings else {}),
        **({"ends": ends} if corpora[0].files_per_corpus else {}),
    }


@dataclass(frozen=True)
class _Split:
    """A corpus, how much it holds, and the part of it that is held out."""

    corpus: Documents
    characters: int
    documents: int
    hold_out: HoldOut
    held_out_by: str

    def parts(self) -> Iterator[tuple[TextPart, bool]]:
        """All of its text in parts, each with a flag that says whether it is held out."""
        return self.hold_out(self.corpus.parts(None))


def _split(corpus: Documents, report: DataReport, progress: ThrottledProgress, hold_out: bool) -> _Split:
    characters = documents = 0
    for part in corpus.parts(report.hit):
        characters += len(part.text)
        documents += part.ends
        progress("reading", characters, None)
    held_out = held_out_text(characters, documents) if hold_out else (no_text, "given files")
    return _Split(corpus, characters, documents, *held_out)


def _train_tokenizer(
    parts: Iterator[tuple[TextPart, bool]], characters: int, options: TextOptions, progress: ThrottledProgress
) -> Tokenizer:
    texts = (part.text for part, held_out in parts if not held_out)
    if options.tokenizer == "characters":
        return Tokenizer.of_characters(texts)
    progress("learning subwords", 0, None)
    size = options.vocabulary_size or choose_vocabulary_size(characters)
    every = max(1, -(-characters // SAMPLED_CHARACTERS))
    sample = (text for number, text in enumerate(texts) if number % every == 0)
    return Tokenizer.train(sample, size, mask=options.mask, whole_texts=options.whole_texts)


class _TokenWriter:
    """Encodes text and appends it to a file of ids, with an end token before, between and after documents."""

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        self._file = path.open("wb")
        self._tokenizer = tokenizer
        self._dtype = token_dtype(tokenizer.vocabulary_size)
        self._waiting: list[TextPart] = []
        self._waiting_characters = 0
        self._open = False
        self.characters = self.bytes = self.tokens = self.unknown = 0
        self._write([tokenizer.special_tokens.end])

    def add(self, part: TextPart) -> None:
        """Add a part of a document."""
        self._waiting.append(part)
        self.characters += len(part.text)
        self.bytes += len(part.text.encode("utf-8", "replace"))
        self._waiting_characters += len(part.text)
        if self._waiting_characters >= _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        rows = self._tokenizer.encode_batch([part.text for part in self._waiting])
        for part, ids in zip(self._waiting, rows, strict=True):
            self._write([*ids, self._tokenizer.special_tokens.end] if part.ends else ids)
            self._open = not part.ends
        self._waiting, self._waiting_characters = [], 0

    def _write(self, ids: list[int]) -> None:
        array = np.array(ids, self._dtype)
        unknown = self._tokenizer.special_tokens.unknown
        self.unknown += int((array == unknown).sum()) if unknown is not None else 0
        self.tokens += len(array)
        self._file.write(array.tobytes())

    def end(self) -> None:
        """Write the rest of a corpus; a document whose end went to the other file ends here."""
        self._flush()
        if self._open:
            self._write([self._tokenizer.special_tokens.end])
            self._open = False

    def close(self) -> None:
        """Write the rest and complete the file."""
        self.end()
        self._file.close()
