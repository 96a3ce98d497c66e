"""Texts with labels: lines of `label TAB text`, or words with a tag each, one a line, sentences between blank lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from heedful.config import nearest
from heedful.data.cleaning import clean_text
from heedful.data.corpus import CorpusFile
from heedful.data.documents import spooled_files
from heedful.data.text_files import MAX_LINE_BYTES, read_lines
from heedful.errors import UserError

LabelUnit = Literal["text", "word"]

RULES = {
    "invalid UTF-8": "Bytes that are not valid UTF-8 are read as U+FFFD.",
    "over-long": f"A line of more than {MAX_LINE_BYTES:,} bytes is cut there.",
    "missing column": "A line without a tab, and so without a label or without a text, is left out.",
    "blank": "A line whose label, text, second text or word is blank is left out.",
    "shortened": "Of a text of more tokens than the model takes the first and the last half are read; "
    "tagged sentences are read in pieces.",
}


class LineReport(Protocol):
    """Who is told of lines that a rule applied to."""

    def hit(self, rule: str, file: str, line: int, action: str = "changed") -> None:
        """A line was changed, or left out."""


class Example(NamedTuple):
    """One or two texts with their label, or the words of a sentence with the tag of each; and where they stand."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    file: str
    line: int


@dataclass(frozen=True)
class LabelledFiles:
    """Files of labelled texts (`unit` text), or of tagged words."""

    files: tuple[CorpusFile, ...]
    unit: LabelUnit

    @classmethod
    def from_patterns(cls, patterns: tuple[str, ...], unit: LabelUnit, spool_folder: Path) -> "LabelledFiles":
        """The files that names or patterns stand for; standard input is copied into a folder, to be read twice."""
        return cls(spooled_files(patterns, spool_folder), unit)

    def examples(self, report: LineReport | None = None) -> Iterator[Example]:
        """All examples in order."""
        for file in self.files:
            yield from _labelled_lines(file, report) if self.unit == "text" else _tagged_sentences(file, report)


def _labelled_lines(file: CorpusFile, report: LineReport | None) -> Iterator[Example]:
    for number, (label, *texts) in _columns(file, 3, report):
        yield Example((label,), tuple(texts), file.name, number)


def _tagged_sentences(file: CorpusFile, report: LineReport | None) -> Iterator[Example]:
    words: list[str] = []
    tags: list[str] = []
    first = 0
    for number, columns in _columns(file, 2, report, blank_lines=True):
        if columns:
            first = first or number
            words.append(columns[0])
            tags.append(columns[1])
        elif words:
            yield Example(tuple(tags), tuple(words), file.name, first)
            words, tags, first = [], [], 0
    if words:
        yield Example(tuple(tags), tuple(words), file.name, first)


def _columns(
    file: CorpusFile, most: int, report: LineReport | None, blank_lines: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """The number and the clean columns of each line that is kept, at most so many; none for a blank line, if asked."""

    def hit(rule: str, number: int, action: str = "changed") -> None:
        if report:
            report.hit(rule, file.name, number, action)

    for number, raw in enumerate(read_lines(file.path), 1):
        if len(raw) > MAX_LINE_BYTES:
            raw = raw[:MAX_LINE_BYTES]
            hit("over-long", number)
        text = raw.decode("utf-8", "replace")
        if "\ufffd" in text and text.encode("utf-8") != raw:
            hit("invalid UTF-8", number)
        if blank_lines and not text.strip():
            yield number, []
            continue
        columns = [clean_text(column) for column in text.split("\t")[:most]]
        if len(columns) < 2:
            hit("missing column", number, "left out")
        elif not all(columns):
            hit("blank", number, "left out")
        else:
            yield number, columns


def label_numbers(example: Example, numbers: dict[str, int]) -> list[int]:
    """The numbers of an example's labels; one that is not known is an error that says where it stands."""
    for label in example.labels:
        if label not in numbers:
            raise UserError(
                f"{example.file}, line {example.line}: the label {label!r} does not occur in the training data: "
                f"{nearest(label, list(numbers))}"
            )
    return [numbers[label] for label in example.labels]
