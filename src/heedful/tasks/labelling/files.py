"""Texts with labels: lines of `label TAB text`, or tagged words, one per line, blank lines between sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.config import nearest
from heedful.errors import UserError
from heedful.tasks.labelling.label_census import LabelCensus
from heedful.text.cleaning import TOO_MANY_OBJECTS, clean_text
from heedful.text.corpus_file import CorpusFile, OnHit, corpus_files
from heedful.text.layout_search import find_layout
from heedful.text.number_columns import refuse_number_columns
from heedful.text.quoting_census import OnWarning
from heedful.text.row_layout import RowLayout, read_as
from heedful.text.row_options import RECOGNISED, RowOptions
from heedful.text.rows import read_rows
from heedful.text.text_files import MAX_LINE_BYTES
from heedful.text.wanted_columns import LABELLED_TEXTS, TAGGED_WORDS, WantedColumns

LabelUnit = Literal["text", "word"]

# Stands between the documents of CoNLL files, as if it were a word.
DOCUMENT_MARK = "-DOCSTART-"

RULES = {
    "invalid UTF-8": "Bytes that are not valid UTF-8 are read as U+FFFD.",
    "over-long": f"A line of more than {MAX_LINE_BYTES:,} bytes is cut there.",
    "missing column": "A row without a label or without a text is left out, as is a line of TSV without a tab, "
    "and one without LABEL:name or __label__name where most lines begin with one.",
    "number of columns": "A row with more or fewer columns than the header, or than most of the first rows, is left "
    "out; with more than 1 % of such rows in a file, the run stops.",
    "several labels": "A line of fastText with more than one label is left out; with more than 1 % of such lines in a "
    "file, the run stops.",
    "comment": "A line of a tagger's file that begins with # and does not have the columns of the others is left out.",
    "not JSON": "A line of a file of JSON objects that is not valid JSON is left out.",
    "null": f"A JSON object whose label or text is null is left out, or a word if it or its tag is; {TOO_MANY_OBJECTS}",
    "not text": "A JSON object with a list or an object in the place of a text or a label is left out; "
    f"{TOO_MANY_OBJECTS}",
    "list lengths": f"A JSON object with more words than tags, or fewer, is left out; {TOO_MANY_OBJECTS}",
    "document mark": f"{DOCUMENT_MARK} of files with spaces between the columns ends a sentence, and is left out.",
    "blank": "A line whose label, text, second text or word is blank is left out.",
    "shortened": "Of a text of more tokens than the model takes the first and the last half are read; "
    "tagged sentences are read in pieces.",
}


class LabelledExample(NamedTuple):
    """One or two texts with their label, or the words of a sentence with the tag of each; and the lines of these."""

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    file: str
    lines: tuple[int, ...]  # one for each label

    @property
    def line(self) -> int:
        """The line that it begins on."""
        return self.lines[0]

    def places(self) -> list[str]:
        """Where each label is, in words."""
        return [f"{self.file}, line {line}" for line in self.lines]


@dataclass(frozen=True)
class LabelledFiles:
    """Files of labelled texts (`unit` text), or of tagged words."""

    files: tuple[CorpusFile, ...]
    unit: LabelUnit
    layouts: tuple[RowLayout, ...]

    @classmethod
    def from_patterns(
        cls,
        patterns: tuple[str, ...],
        unit: LabelUnit,
        spool_folder: Path,
        encoding: str | None = None,
        row_options: RowOptions = RECOGNISED,
    ) -> "LabelledFiles":
        """The files that names or patterns stand for; standard input is copied into a folder, to be read twice."""
        files = corpus_files(patterns, spool_folder, encoding)
        return cls(files, unit, tuple(_layout(file, row_options, _WANTED[unit]) for file in files))

    @property
    def wanted(self) -> WantedColumns:
        """The columns that are read."""
        return _WANTED[self.unit]

    def unusual_layouts(self) -> dict[str, RowLayout]:
        """The layouts of the files that are not the usual TSV."""
        found = zip(self.files, self.layouts, strict=True)
        return {file.shown_name: layout for file, layout in found if not layout.is_usual(self.wanted)}

    def read_as(self) -> list[str]:
        """Lines on the files that are not the usual TSV, or whose texts are pairs, which takes just one more column."""
        found = zip(self.files, self.layouts, strict=True)
        told = {
            file.shown_name: layout
            for file, layout in found
            if not layout.is_usual(self.wanted) or len(layout.present) > self.wanted.needed
        }
        return read_as(told, self.wanted)

    def examples(self, on_hit: OnHit | None = None, on_warning: OnWarning | None = None) -> Iterator[LabelledExample]:
        """All examples in order."""
        read = _labelled_lines if self.unit == "text" else _tagged_sentences
        for file, layout in zip(self.files, self.layouts, strict=True):
            yield from read(file, layout, on_hit, on_warning)


_WANTED: dict[LabelUnit, WantedColumns] = {"text": LABELLED_TEXTS, "word": TAGGED_WORDS}


def _layout(file: CorpusFile, row_options: RowOptions, wanted: WantedColumns) -> RowLayout:
    layout = find_layout(file, row_options, wanted)
    if row_options.columns is None:
        refuse_number_columns(file, layout, wanted)
    return layout


def _labelled_lines(
    file: CorpusFile, layout: RowLayout, on_hit: OnHit | None, on_warning: OnWarning | None
) -> Iterator[LabelledExample]:
    labels = LabelCensus(file.shown_name)
    for number, (label, *texts) in _columns(file, layout, on_hit, on_warning):
        if not labels.is_single(label, texts[0], number):
            if on_hit:
                on_hit("several labels", "left out", file=file.shown_name, line=number)
            continue
        yield LabelledExample((label,), tuple(texts), file.shown_name, (number,))
    labels.finish()


def _tagged_sentences(
    file: CorpusFile, layout: RowLayout, on_hit: OnHit | None, on_warning: OnWarning | None
) -> Iterator[LabelledExample]:
    words: list[str] = []
    tags: list[str] = []
    lines: list[int] = []
    for number, columns in _columns(file, layout, on_hit, on_warning, blank_lines=True):
        if layout.cells and columns[:1] == [DOCUMENT_MARK]:
            if on_hit:
                on_hit("document mark", "left out", file=file.shown_name, line=number)
            columns = []
        if columns:
            lines.append(number)
            words.append(columns[0])
            tags.append(columns[1])
        elif words:
            yield LabelledExample(tuple(tags), tuple(words), file.shown_name, tuple(lines))
            words, tags, lines = [], [], []
    if words:
        yield LabelledExample(tuple(tags), tuple(words), file.shown_name, tuple(lines))


def _columns(
    file: CorpusFile,
    layout: RowLayout,
    on_hit: OnHit | None,
    on_warning: OnWarning | None,
    blank_lines: bool = False,
) -> Iterator[tuple[int, list[str]]]:
    """The number and the clean columns of each row that is kept; with `blank_lines`, a blank line has no columns."""

    def hit(rule: str, number: int, action: str = "changed") -> None:
        if on_hit:
            on_hit(rule, action, file=file.shown_name, line=number)

    for number, cells, is_blank, is_over_long, fault in read_rows(file, layout, on_warning):
        if fault:
            hit(fault, number, "left out")
            continue
        if is_over_long:
            hit("over-long", number, "changed" if cells else "left out")
            if not cells:
                continue
        texts = [cell.decode("utf-8", "replace") for cell in cells]
        if any("\ufffd" in text and text.encode("utf-8") != cell for text, cell in zip(texts, cells, strict=True)):
            hit("invalid UTF-8", number)
        if blank_lines and (is_blank or (texts and not any(text.strip() for text in texts))):
            yield number, []
            continue
        columns = [clean_text(text) for text in texts]
        if len(columns) < 2:
            hit("missing column", number, "left out")
        elif not all(columns):
            hit("blank", number, "left out")
        else:
            yield number, columns


def label_numbers(example: LabelledExample, numbers: dict[str, int]) -> list[int]:
    """The numbers of an example's labels; an unknown label is an error that says where it is."""
    for label, place in zip(example.labels, example.places(), strict=True):
        if label not in numbers:
            raise UserError(
                f"{place}: the label {label!r} does not occur in the training data: {nearest(label, list(numbers))}"
            )
    return [numbers[label] for label in example.labels]
