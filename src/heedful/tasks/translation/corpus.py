"""Aligned files or table files as blocks of raw pairs that know their files and line numbers."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from heedful.errors import UserError
from heedful.text.cleaning import Rule
from heedful.text.column_census import ColumnCensus
from heedful.text.corpus_file import CorpusFile, aligned_files, spooled_files
from heedful.text.layout_search import find_layout
from heedful.text.number_columns import refuse_number_columns
from heedful.text.quoting_census import OnWarning, QuotingCensus
from heedful.text.row_layout import RowLayout, read_as
from heedful.text.row_options import RECOGNISED, RowOptions
from heedful.text.rows import TableRow, read_rows
from heedful.text.text_files import (
    MAX_LINE_BYTES,
    STANDARD_INPUT,
    expand_files,
    language_from_name,
    language_pair_from_name,
)
from heedful.text.unread_header import warn_of_unread_header
from heedful.text.wanted_columns import WantedColumns, wanted_pair

_Value = TypeVar("_Value")
_ROWS_TOGETHER = 4096
# Stands for both sides of a row that was cut, so that the cleaning rules recognise it.
_OVER_LONG = b" " * (MAX_LINE_BYTES + 1)


@dataclass(frozen=True)
class RawPairs:
    """Consecutive pairs of raw lines, the names of their files, and the line number of the first."""

    files: tuple[str, ...]
    first_line: int
    sources: list[bytes]
    targets: list[bytes]
    missing: tuple[int, ...] = ()  # places of rows with fewer than two columns
    faults: Mapping[int, Rule] = field(default_factory=dict)  # places of rows to be left out for another reason
    lines: tuple[int, ...] | None = None  # the line that each pair begins on, if the lines are not consecutive
    group: int = 0  # the number of their files in the corpus

    def line(self, offset: int) -> int:
        """The number of the line on which a pair begins."""
        return self.first_line + offset if self.lines is None else self.lines[offset]


@dataclass(frozen=True)
class ParallelCorpus:
    """Sentence pairs in files: pairs of aligned files (source, target), or single table files.

    If several corpora are to be mixed, `groups_per_corpus` says how many groups of files each of them has.
    """

    groups: tuple[tuple[CorpusFile, ...], ...]
    source_language: str | None
    target_language: str | None
    row_options: RowOptions = RECOGNISED
    groups_per_corpus: tuple[int, ...] = ()

    @classmethod
    def from_files(
        cls,
        sources: Sequence[str],
        targets: Sequence[str],
        source_language: str | None = None,
        target_language: str | None = None,
        encodings: tuple[str | None, str | None] = (None, None),
    ) -> "ParallelCorpus":
        """Source and target files (or patterns), each aligned with its counterpart, and the encoding of each side."""
        source_files, target_files = expand_files(sources), expand_files(targets)
        if STANDARD_INPUT in source_files + target_files:
            raise UserError("standard input can only give a TSV (source, tab, target), not one side of a corpus")
        if len(source_files) != len(target_files):
            raise UserError(
                f"{len(source_files)} source files ({_listed(source_files)}) but "
                f"{len(target_files)} target files ({_listed(target_files)}): each file needs its counterpart"
            )
        if not source_files:
            raise UserError("no files were given: name at least one source file and one target file")
        return cls(
            tuple(
                aligned_files(source, target, encodings)
                for source, target in zip(source_files, target_files, strict=True)
            ),
            source_language or _common([language_from_name(file) for file in source_files]),
            target_language or _common([language_from_name(file) for file in target_files]),
        )

    @classmethod
    def from_tsv(
        cls,
        files: Sequence[str],
        source_language: str | None = None,
        target_language: str | None = None,
        encoding: str | None = None,
        row_options: RowOptions = RECOGNISED,
    ) -> "ParallelCorpus":
        """Table files (or patterns): TSV, the source in the first column and the target in the second, or see rows."""
        expanded = expand_files(files)
        if not expanded:
            raise UserError("no files were given: name at least one TSV file")
        if expanded.count(STANDARD_INPUT) > 1:
            raise UserError("standard input can be given only once")
        source, target = _common([language_pair_from_name(file) for file in expanded]) or (None, None)
        return cls(
            tuple((CorpusFile(file, Path(file), encoding),) for file in expanded),
            source_language or source,
            target_language or target,
            row_options,
        )

    @property
    def files(self) -> list[CorpusFile]:
        """All files, group by group."""
        return [file for group in self.groups for file in group]

    @property
    def reads_standard_input(self) -> bool:
        """Whether one of the files is standard input."""
        return any(file.name == STANDARD_INPUT for file in self.files)

    def spooled(self, folder: Path) -> "ParallelCorpus":
        """The same corpus, with standard input and pipes copied into a folder so that they can be read twice."""
        files = iter(spooled_files(self.files, folder))
        return replace(self, groups=tuple(tuple(next(files) for _ in group) for group in self.groups))

    @property
    def wanted(self) -> WantedColumns:
        """The columns of the two sides."""
        return wanted_pair(self.source_language, self.target_language)

    def layouts(self) -> dict[str, RowLayout]:
        """The layouts of the table files that are not the usual TSV; to find them, the files are looked at."""
        return {name: layout for name, layout in self._layouts().items() if not layout.is_usual(self.wanted)}

    def _layouts(self) -> dict[str, RowLayout]:
        """The layout of each table file."""
        tables = [group[0] for group in self.groups if len(group) == 1]
        return {file.shown_name: self._layout(file) for file in tables}

    def _layout(self, file: CorpusFile) -> RowLayout:
        layout = find_layout(file, self.row_options, self._wanted_of(file))
        if self.row_options.columns is None:
            refuse_number_columns(file, layout, self.wanted)
        return layout

    def _wanted_of(self, file: CorpusFile) -> WantedColumns:
        """The columns of the two sides in one file, which may be named after different languages than the rest."""
        source, target = language_pair_from_name(file.name) or (None, None)
        return wanted_pair(self.source_language or source, self.target_language or target)

    def blocks(self, on_warning: OnWarning | None = None) -> Iterator[RawPairs]:
        """All pairs in order, in blocks of bounded size; unequal line counts are an error that states both."""
        layouts = self._layouts()
        for number, group in enumerate(self.groups):
            if len(group) > 1:
                blocks = _aligned_blocks(*group)
            else:
                layout = layouts[group[0].shown_name]
                read = _tsv_blocks if layout.is_usual(self.wanted) else _row_blocks
                blocks = read(group[0], layout, on_warning)
            yield from (replace(block, group=number) for block in blocks)


def _listed(files: list[str]) -> str:
    return ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")


def _common(values: list[_Value | None]) -> _Value | None:
    return values[0] if all(value == values[0] for value in values) else None


def _tsv_blocks(file: CorpusFile, layout: RowLayout, on_warning: OnWarning | None) -> Iterator[RawPairs]:
    """The pairs of the usual TSV, block by block, since most large files are like that."""
    line = 1
    warn_of_unread_header(file.shown_name, layout, on_warning)
    census, width = ColumnCensus(file.shown_name, layout), layout.width
    quoting = QuotingCensus(file.shown_name, on_warning)
    most = max(2, width or 0)
    for lines in file.line_blocks():
        # A line that was cut may have lost its second column: used for both sides, it counts as over-long.
        columns = [text.split(b"\t", most) if len(text) <= MAX_LINE_BYTES else [text, text] for text in lines]
        missing = tuple(place for place, cells in enumerate(columns) if len(cells) < 2)
        others = [place for place, cells in enumerate(columns) if len(cells) != width and lines[place].strip()]
        odd = [place for place in others if len(lines[place]) <= MAX_LINE_BYTES and layout.is_odd(columns[place])]
        census.count(len(lines) - len(odd))
        quoting.look_at_tsv(lines)
        for place in odd:
            census.look(line + place, columns[place], odd=True)
        for place in {*missing, *odd}:
            columns[place] = [columns[place][0], b""]
        sources, targets = ([cells[side] for cells in columns] for side in (0, 1))
        faults = dict.fromkeys(set(odd).difference(missing), Rule.OTHER_COLUMNS)
        yield RawPairs((file.shown_name,), line, sources, targets, missing, faults)
        line += len(lines)
    census.finish()
    quoting.finish()


def _row_blocks(file: CorpusFile, layout: RowLayout, on_warning: OnWarning | None) -> Iterator[RawPairs]:
    rows = read_rows(file, layout, on_warning)
    while some := list(islice(rows, _ROWS_TOGETHER)):
        cells = [_pair_of(row) for row in some]
        faults = {place: Rule(row.fault) for place, row in enumerate(some) if row.fault}
        missing = tuple(place for place, pair in enumerate(cells) if pair is None and place not in faults)
        # A row that lacks a column gets what it has as its source, so that it differs from a blank line.
        pairs = [
            pair or [b"" if row.is_blank else b" ".join(row.cells) or b"?", b""]
            for row, pair in zip(some, cells, strict=True)
        ]
        sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))
        lines = tuple(row.line for row in some)
        yield RawPairs((file.shown_name,), lines[0], sources, targets, missing, faults, lines)


def _pair_of(row: TableRow) -> list[bytes] | None:
    if row.is_over_long:
        return [_OVER_LONG, _OVER_LONG]
    return row.cells if len(row.cells) >= 2 else None


def _aligned_blocks(source: CorpusFile, target: CorpusFile) -> Iterator[RawPairs]:
    source_blocks, target_blocks = source.line_blocks(), target.line_blocks()
    sources: list[bytes] = []
    targets: list[bytes] = []
    line = 1
    while True:
        sources = sources or next(source_blocks, [])
        targets = targets or next(target_blocks, [])
        size = min(len(sources), len(targets))
        if size == 0:
            break
        yield RawPairs((source.name, target.name), line, sources[:size], targets[:size])
        sources, targets, line = sources[size:], targets[size:], line + size
    source_lines = line - 1 + len(sources) + sum(map(len, source_blocks))
    target_lines = line - 1 + len(targets) + sum(map(len, target_blocks))
    if source_lines != target_lines:
        raise UserError(
            f"{source.name} has {source_lines} lines but {target.name} has {target_lines}: "
            "line by line they must be translations of each other"
        )


_FAULTS = {
    Rule.OTHER_COLUMNS: "does not have as many columns as the other rows",
    Rule.NOT_JSON: "is not JSON",
    Rule.NULL: "has null in the place of a text",
    Rule.NOT_TEXT: "has a list or an object in the place of a text",
    Rule.LIST_LENGTHS: "has lists of different lengths",
}


class ReadPairs(NamedTuple):
    """The two columns of a table file, and in words where each row begins."""

    sources: list[str]
    targets: list[str]
    places: list[str]


def read_pairs(
    file: str,
    encoding: str | None = None,
    layout: RowOptions = RECOGNISED,
    on_warning: OnWarning | None = None,
) -> ReadPairs:
    """The two columns of a table file, read as training reads it; a row without one of them is an error."""
    layout.check()
    corpus = ParallelCorpus.from_tsv([file], encoding=encoding, row_options=layout)
    with tempfile.TemporaryDirectory() as folder:
        pairs = _read(corpus.spooled(Path(folder)), on_warning)
    if not pairs.sources:
        raise UserError(f"{corpus.files[0].shown_name} is empty")
    return pairs


def _read(corpus: ParallelCorpus, on_warning: OnWarning | None) -> ReadPairs:
    if on_warning:
        for text in read_as(corpus.layouts(), corpus.wanted):
            on_warning(text)
    pairs = ReadPairs([], [], [])
    for block in corpus.blocks(on_warning):
        places = [f"line {block.line(place)} of {block.files[0]}" for place in range(len(block.sources))]
        for place in block.missing:
            if block.sources[place] or block.targets[place]:
                raise UserError(f"{places[place]} has fewer than two columns: source and target")
        for place, fault in block.faults.items():
            raise UserError(f"{places[place]} {_FAULTS[fault]}: correct it, or remove it")
        pairs.sources.extend(text.decode("utf-8", "replace") for text in block.sources)
        pairs.targets.extend(text.decode("utf-8", "replace") for text in block.targets)
        pairs.places.extend(places)
    return pairs
