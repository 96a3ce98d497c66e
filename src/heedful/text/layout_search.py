"""The search for the layout of a table file."""

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from heedful.config import nearest
from heedful.errors import UserError
from heedful.text.column_kinds import are_numbers, by_column, likely_columns, looks_like_header
from heedful.text.corpus_file import CorpusFile
from heedful.text.language_names import language_of
from heedful.text.row_layout import RowKind, RowLayout, split_cells
from heedful.text.row_options import RowOptions
from heedful.text.rows import cells_of_object
from heedful.text.wanted_columns import WantedColumns

_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
# Lines by which a layout is recognised.
_LINES_LOOKED_AT = 100
# A label that no text begins with: COARSE:fine of TREC, or __label__name of fastText.
_LEADING_LABEL = re.compile(r"([A-Za-z_]+:[A-Za-z_]+|__label__\S+)[ \t]+\S")
# The share of the first lines that must have two columns or more to be words between spaces; others may be broken.
_WORDS_SHARE = 0.9

# The columns of CoNLL-U; the number of a word may be a range, or that of an empty node.
_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_CONLLU_SHARE = 0.9  # of the first rows; others may be broken
_CONLLU_NUMBER = re.compile(r"\d+([-.]\d+)?")


def find_layout(file: CorpusFile, options: RowOptions, wanted: WantedColumns) -> RowLayout:
    """The layout of a file, by what the user says about it, by its name, and by its first lines."""
    blocks = file.line_blocks()
    lines = [line.decode("utf-8", "replace") for lines in islice(blocks, 1) for line in lines[:_LINES_LOOKED_AT]]
    lines = [line for line in lines if line.strip()]
    if wanted.spaces == "words":
        lines = _without_comments(lines)
    if not lines:  # nothing to tell by, and nothing to read
        return RowLayout(columns=tuple(range(len(wanted.roles))))
    search = _Search(file.shown_name, lines, options, wanted)
    return search.json_objects() or search.conllu() or search.table()


def _without_comments(lines: list[str]) -> list[str]:
    """Lines of tagged words, except those that begin with # and do not have as many columns as most."""
    rows = [line for line in lines if not line.startswith("#")]
    separator = "\t" if 2 * sum("\t" in line for line in rows) > len(rows) else None
    counted = Counter(len(line.split(separator)) for line in rows)
    usual = counted.most_common(1)[0][0] if counted else 0
    return [line for line in lines if not line.startswith("#") or len(line.split(separator)) == usual]


@dataclass(frozen=True)
class _Search:
    """The search for the layout of one file, by its first lines that are not blank."""

    file: str
    lines: list[str]
    options: RowOptions
    wanted: WantedColumns

    def unexpected(self, more: str = "") -> UserError:
        """The error that says what was expected and shows the first line."""
        return UserError(
            f"{self.file}: expected {self.wanted.expected} (or CSV, or JSON objects), but it begins with "
            f"{self._shown()}{more}; --columns, --header and --delimiter say how it is to be read"
        )

    def _shown(self) -> str:
        return repr(self.lines[0] if len(self.lines[0]) <= 80 else self.lines[0][:80] + "...")

    def json_objects(self) -> RowLayout | None:
        """One JSON object per line, if the name says so or the first line is one."""
        named = self._unpacked_name().endswith(_JSON_ENDINGS)
        try:
            first: Any = json.loads(self.lines[0])
        except ValueError:
            first = None
        if not isinstance(first, dict):
            if named:
                raise UserError(
                    f"{self.file}: expected a JSON object per line, but it begins with {self.lines[0][:80]!r}: "
                    "an array must be written as one object per line"
                )
            return None
        if self.options.delimiter is not None:
            return None
        names = self.options.column_names()
        if names is None:
            keys = [
                name
                for key, value in first.items()
                for name in ([f"{key}.{inner}" for inner in value] if isinstance(value, dict) else [key])
            ]
            places = self.wanted.placed(keys)
            if places is None:
                raise self._which_columns(keys, [cells_of_object(line, keys) for line in self.lines])
            names = [keys[place] for place in places]
        return RowLayout("json", "", columns=tuple(names))

    def conllu(self) -> RowLayout | None:
        """CoNLL-U: ten columns between tabs, the first of them the number of a word."""
        rows = [line.split("\t") for line in self.lines]
        if self.wanted.spaces != "words" or self.options.delimiter not in (None, "tab"):
            return None
        fitting = sum(len(row) == len(_CONLLU) and bool(_CONLLU_NUMBER.fullmatch(row[0])) for row in rows)
        if fitting < _CONLLU_SHARE * len(rows):
            return None
        names = self.options.column_names() or ["form", "upos"]
        columns = tuple(
            int(name) - 1 if name.isdecimal() else _CONLLU.index(name.lower()) if name.lower() in _CONLLU else -1
            for name in names
        )
        if not all(0 <= column < len(_CONLLU) for column in columns):
            raise UserError(
                f"{self.file} is CoNLL-U, which does not have all of the columns {', '.join(names)}: "
                f"it has {', '.join(_CONLLU)}, numbered from 1 to {len(_CONLLU)}"
            )
        return RowLayout(columns=columns, is_conllu=True, width=len(_CONLLU), comments=True)

    def table(self) -> RowLayout:
        """Columns between tabs, spaces, commas or another sign."""
        separator = self.options.separator()
        is_csv = self._unpacked_name().endswith(".csv")
        if separator is None:
            separator = self._usual_csv_separator() if is_csv else self._recognised_separator()
        kind: RowKind = "csv" if is_csv or separator not in "\t " else "plain"
        takes_rest = separator == " " and self.wanted.spaces != "words"
        by_words = separator == " " and not takes_rest
        blank = RowLayout(kind, separator, takes_rest=takes_rest)
        first = split_cells(self.lines[0], blank)
        header, columns = self._columns(first, blank)
        cells = self._usual_number_of_words() if by_words else None
        if cells and self.options.columns is None:
            columns = (0, cells - 1)  # what is to be learned comes last, as in the files of CoNLL
        marked_labels = takes_rest and self.options.separator() is None
        columns = (0, 1) if marked_labels else columns[:2] if takes_rest else columns
        layout = replace(blank, header=header, columns=columns, cells=cells)
        rows = self._rows(layout)
        counted = Counter(len(row) for row in rows)
        needed = max(columns[: self.wanted.needed])
        if self.options.are_numbers and needed >= max(len(first), *counted):
            most = max(len(first), *counted)
            raise UserError(
                f"{self.file}: there is no column {needed + 1}: its rows have {most}, as in {self._shown()}"
            )
        by_header = header and not self.options.are_numbers
        if needed >= len(first) and (by_header or self._lacking(counted, needed)):
            raise self.unexpected()
        return replace(
            layout,
            width=self._width(layout, len(first), counted),
            stops=not self.options.are_numbers,
            comments=self.wanted.spaces == "words",
            marked_labels=marked_labels,
            unread_header=() if header or takes_rest or not self._may_be_header(rows) else tuple(first),
        )

    def _may_be_header(self, rows: list[list[str]]) -> bool:
        """Whether the first row looks like a header, and the user does not say whether it is one."""
        return self.options.header is None and looks_like_header(rows)

    def _usual_number_of_words(self) -> int:
        """The most frequent number of words per line; of equally frequent ones, that of the earliest line."""
        counted = Counter(len(line.split()) for line in self.lines)
        return counted.most_common(1)[0][0]

    def _rows(self, layout: RowLayout) -> list[list[str]]:
        """The first rows, except a last one of CSV that may be cut."""
        if layout.kind != "csv":
            return [split_cells(line, layout) for line in self.lines]
        try:
            rows = list(csv.reader((line + "\n" for line in self.lines), delimiter=layout.delimiter))
        except csv.Error:  # a field without an end; reading the file reports it
            rows = [split_cells(line, layout) for line in self.lines]
        return rows[:-1] if len(self.lines) >= _LINES_LOOKED_AT and len(rows) > 1 else rows

    def _width(self, layout: RowLayout, first: int, counted: Counter[int]) -> int | None:
        """Columns that each row must have: as many as the header, or as most of the rows."""
        if layout.takes_rest or layout.cells:
            return layout.cells
        if layout.header and not self.options.are_numbers:
            return first
        if layout.header:
            counted = counted - Counter([first]) or counted
        wide = {width: rows for width, rows in counted.items() if width >= self.wanted.needed}
        return max(wide, key=lambda width: (wide[width], -width), default=None)

    def _lacking(self, counted: Counter[int], needed: int) -> bool:
        """Whether most rows, not just the first, are short of a column."""
        return 2 * sum(rows for width, rows in counted.items() if needed >= width) > counted.total()

    def _unpacked_name(self) -> str:
        return self.file.lower().removesuffix(".gz").removesuffix(".xz")

    def _usual_csv_separator(self) -> str:
        return max(",;\t|", key=self.lines[0].count)

    def _recognised_separator(self) -> str:
        if 2 * sum("\t" in line for line in self.lines) >= len(self.lines):
            return "\t"
        fields = [len(line.split()) for line in self.lines]
        if self.wanted.spaces == "words" and sum(each >= 2 for each in fields) >= _WORDS_SHARE * len(fields):
            return " "
        if self._marked_labels():
            return " "
        for separator in ",;":
            if self.wanted.placed(split_cells(self.lines[0], RowLayout("csv", separator))) is not None:
                return separator
        if self.options.columns is not None or any("\t" in line for line in self.lines):
            return "\t"
        raise self.unexpected()

    def _marked_labels(self) -> bool:
        """Whether most lines begin with a label that no text begins with."""
        labelled = sum(_LEADING_LABEL.match(line) is not None for line in self.lines)
        return self.wanted.spaces == "label" and 2 * labelled > len(self.lines)

    def _columns(self, first: list[str], layout: RowLayout) -> tuple[bool, tuple[int, ...]]:
        """Whether the first line is a header, and where the columns are."""
        names = self.options.column_names()
        placed = self.wanted.placed(first)
        is_header = placed is not None or self._names_languages(first, layout)
        if names is None:
            usual = tuple(range(len(self.wanted.roles)))
            header = is_header if self.options.header is None else self.options.header
            if header and placed is None and len(first) > self.wanted.needed:
                raise self._which_columns(first, self._rows(layout)[1:])
            return header, placed if header and placed is not None else usual
        if all(name.isdecimal() for name in names):
            header = is_header if self.options.header is None else self.options.header
            return header, tuple(int(name) - 1 for name in names)
        if self.options.header is False:
            raise UserError(f"--columns {self.options.columns!r} names columns, which needs a header")
        header_names = [name.strip() for name in first]
        for name in names:
            if name not in header_names:
                raise UserError(
                    f"{self.file} has no column {name!r}: its header is {', '.join(header_names)}; "
                    f"{nearest(name, header_names)}"
                )
        return True, tuple(header_names.index(name) for name in names)

    def _names_languages(self, first: list[str], layout: RowLayout) -> bool:
        """Whether the first row, and no other, is nothing but the names of two languages."""
        if not self.wanted.are_languages or not _are_languages(first):
            return False
        return not any(_are_languages(split_cells(line, layout)) for line in self.lines[1:])

    def _which_columns(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> UserError:
        """The error that asks for the columns, with those that look like what is wanted, else the first that may."""
        columns = by_column([row[: len(names)] for row in rows])
        texts = [place for place in range(len(names)) if not are_numbers(columns.get(place, []))]
        likely = likely_columns(columns, self.wanted) or (texts if len(texts) > 1 else range(len(names)))[:2]
        roles = " and ".join(role[0] for role in self.wanted.roles[: self.wanted.needed])
        return UserError(
            f"{self.file} has the columns {', '.join(names)}: say with --columns which of them are {roles}, "
            f"as in --columns {','.join(names[place] for place in likely)}"
        )


def _are_languages(cells: list[str]) -> bool:
    """Whether there are two cells, which are the names or codes of two different languages and nothing else."""
    languages = {language_of(cell) for cell in cells}
    return len(cells) == len(languages) == 2 and None not in languages
