"""How the rows of a table file are laid out: TSV, CSV, JSON lines or words between spaces, and in which columns."""

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NamedTuple

from heedful.config import nearest
from heedful.errors import UserError
from heedful.text.corpus_file import CorpusFile

RowKind = Literal["plain", "csv", "json"]

_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ", "\\t": "\t"}
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
# Lines by which a layout is recognised.
_LINES_LOOKED_AT = 100
# A label that no text begins with: COARSE:fine of TREC, or __label__name of fastText.
_LEADING_LABEL = re.compile(r"([A-Za-z_]+:[A-Za-z_]+|__label__\S+)[ \t]+\S")


@dataclass(frozen=True)
class RowOptions:
    """What a user says of a table file; what is not said is recognised."""

    columns: str | None = None
    header: bool | None = None
    delimiter: str | None = None

    def check(self) -> None:
        """Raise a UserError for what cannot be meant."""
        self.separator()
        names = self.column_names()
        if names is not None and (len(names) < 2 or not all(names) or "0" in names):
            raise UserError(
                f"--columns {self.columns!r}: expected two columns or more, numbered from 1 or named, as in 2,1"
            )

    def separator(self) -> str | None:
        """The character between columns, if it was given."""
        if self.delimiter is None:
            return None
        found = _DELIMITERS.get(self.delimiter.lower(), self.delimiter)
        if len(found) != 1 or found in '"\r\n' or found.isalnum():
            raise UserError(f"--delimiter {self.delimiter!r}: expected tab, comma, semicolon, pipe, space or one sign")
        return found

    def column_names(self) -> list[str] | None:
        """The numbers or names of the columns, if they were given."""
        return None if self.columns is None else [name.strip() for name in self.columns.split(",")]


RECOGNISED = RowOptions()


class WantedColumns(NamedTuple):
    """The columns that a task reads, in order: how each is called, and its usual names in headers.

    `needed` of them must be there. `spaces` says how a line without tabs may be read: as words, or as a label that
    a text follows.
    """

    roles: tuple[tuple[str, ...], ...]
    expected: str
    needed: int = 2
    spaces: Literal["words", "label"] | None = None

    def placed(self, header: Sequence[str]) -> tuple[int, ...] | None:
        """Which columns of a header have these roles, or None if one that is needed is not there."""
        lower = [name.strip().lower() for name in header]
        places = [next((lower.index(name) for name in names if name in lower), None) for names in self.roles]
        found = [place for place in places if place is not None]
        return tuple(found) if None not in places[: self.needed] else None


TEXT_NAMES = ("text", "sentence", "sentence1", "text1", "premise", "question", "question1", "review", "content")
LABEL_NAMES = ("label", "labels", "class", "category", "sentiment", "intent", "tag", "topic", "stars", "rating")
SECOND_NAMES = ("text2", "sentence2", "hypothesis", "question2", "second")
WORD_NAMES = ("word", "words", "token", "tokens", "form")
TAG_NAMES = ("tag", "tags", "label", "labels", "ner", "ner_tags", "pos", "upos", "pos_tags")
LABELLED_TEXTS = WantedColumns(
    (LABEL_NAMES, TEXT_NAMES, SECOND_NAMES), "a label, a tab and a text per line", spaces="label"
)
TAGGED_WORDS = WantedColumns((WORD_NAMES, TAG_NAMES), "a word, a tab or a space, and its tag per line", spaces="words")


def wanted_pair(source_language: str | None, target_language: str | None) -> WantedColumns:
    """The columns of a source and its translation, which a header may also call by their languages."""
    languages = (name.lower() if name else None for name in (source_language, target_language))
    by_language = ([name, f"translation.{name}"] if name else [] for name in languages)
    usual = (("source", "src"), ("target", "tgt", "trg"))
    roles = tuple((*names, *others) for names, others in zip(usual, by_language, strict=True))
    return WantedColumns(roles, "a source, a tab and its translation per line")


@dataclass(frozen=True)
class RowLayout:
    """How the rows of one file are read: columns are counted from 0, those of JSON objects are named."""

    kind: RowKind = "plain"
    delimiter: str = "\t"
    header: bool = False
    columns: tuple[int | str, ...] = ()
    # Cells that a row must have, where the number tells a row from other lines.
    cells: int | None = None
    # Whether the last column takes the rest of its line, spaces and all.
    takes_rest: bool = False
    # Columns that the first lines have, where they were counted; this says nothing of how rows are read.
    width: int | None = field(default=None, compare=False)

    @property
    def present(self) -> tuple[int | str, ...]:
        """Those of the columns that the file has."""
        return tuple(
            place for place in self.columns if isinstance(place, str) or self.width is None or place < self.width
        )

    def choices(self) -> dict[str, Any]:
        """All by which two readings of a file may differ."""
        content = asdict(self)
        del content["width"]
        return content

    def is_usual(self, wanted: WantedColumns) -> bool:
        """Whether this is TSV without a header, its first columns being those that are wanted."""
        usual = tuple(range(len(wanted.roles)))
        return self == RowLayout(columns=usual)

    def description(self, wanted: WantedColumns) -> str:
        """The layout in words."""
        names = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons"}
        kind = "JSON objects" if self.kind == "json" else f"columns between {names.get(self.delimiter, self.delimiter)}"
        places = (place if isinstance(place, str) else f"column {place + 1}" for place in self.present)
        roles = ", ".join(f"{role[0]} is {place}" for role, place in zip(wanted.roles, places, strict=False))
        return f"{kind}{', with a header' if self.header else ''}: {roles}"


def read_as(layouts: Mapping[str, RowLayout], wanted: WantedColumns) -> list[str]:
    """Lines that say how files, given by their names, are laid out."""
    return [f"{name} is read as {layout.description(wanted)}" for name, layout in layouts.items()]


def find_layout(file: CorpusFile, options: RowOptions, wanted: WantedColumns) -> RowLayout:
    """The layout of a file, by what the user says of it, by its name, and by its first lines."""
    blocks = file.line_blocks()
    lines = [line.decode("utf-8", "replace") for lines in islice(blocks, 1) for line in lines[:_LINES_LOOKED_AT]]
    lines = [line for line in lines if line.strip()]
    if not lines:  # nothing to tell by, and nothing to read
        return RowLayout(columns=tuple(range(len(wanted.roles))))
    search = _Search(file.shown_name, lines, options, wanted)
    return search.json_objects() or search.table()


@dataclass(frozen=True)
class _Search:
    """The search for the layout of one file, by its first lines that are not blank."""

    file: str
    lines: list[str]
    options: RowOptions
    wanted: WantedColumns

    def unexpected(self, more: str = "") -> UserError:
        """The error that says what was expected and shows the first line."""
        first = self.lines[0] if len(self.lines[0]) <= 80 else self.lines[0][:80] + "..."
        return UserError(
            f"{self.file}: expected {self.wanted.expected} (or CSV, or JSON objects), but it begins with {first!r}"
            f"{more}; --columns, --header and --delimiter say how it is to be read"
        )

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
                raise self._which_columns(keys)
            names = [keys[place] for place in places]
        return RowLayout("json", "", columns=tuple(names))

    def table(self) -> RowLayout:
        """Columns between tabs, spaces, commas or another sign."""
        separator = self.options.separator()
        is_csv = self._unpacked_name().endswith(".csv")
        if separator is None:
            separator = self._usual_csv_separator() if is_csv else self._recognised_separator()
        kind: RowKind = "csv" if is_csv or separator not in "\t " else "plain"
        takes_rest = separator == " " and self.wanted.spaces != "words"
        first = split_cells(self.lines[0], RowLayout(kind, separator, takes_rest=takes_rest))
        header, columns = self._columns(first)
        if separator == " " and not takes_rest and self.options.columns is None:
            columns = (0, len(first) - 1)  # what is to be learned comes last, as in the files of CoNLL
        if max(columns[: self.wanted.needed]) >= len(first) and (header or self._lacking(separator, kind, columns)):
            raise self.unexpected()
        columns = columns[:2] if takes_rest else columns
        cells = len(first) if separator == " " and not takes_rest else None
        layout = RowLayout(kind, separator, header, columns, cells, takes_rest)
        return replace(layout, width=max(len(split_cells(line, layout)) for line in self.lines))

    def _lacking(self, separator: str, kind: RowKind, columns: tuple[int, ...]) -> bool:
        """Whether most lines, not just the first, are short of a column."""
        layout = RowLayout(kind, separator)
        needed = max(columns[: self.wanted.needed])
        return 2 * sum(needed >= len(split_cells(line, layout)) for line in self.lines) > len(self.lines)

    def _unpacked_name(self) -> str:
        return self.file.lower().removesuffix(".gz").removesuffix(".xz")

    def _usual_csv_separator(self) -> str:
        return max(",;\t|", key=self.lines[0].count)

    def _recognised_separator(self) -> str:
        if 2 * sum("\t" in line for line in self.lines) >= len(self.lines):
            return "\t"
        fields = [len(line.split()) for line in self.lines]
        if self.wanted.spaces == "words" and min(fields) >= 2:
            return " "
        if self.wanted.spaces == "label" and all(_LEADING_LABEL.match(line) for line in self.lines):
            return " "
        for separator in ",;":
            if self.wanted.placed(split_cells(self.lines[0], RowLayout("csv", separator))) is not None:
                return separator
        if self.options.columns is not None or any("\t" in line for line in self.lines):
            return "\t"
        raise self.unexpected()

    def _columns(self, first: list[str]) -> tuple[bool, tuple[int, ...]]:
        """Whether the first line is a header, and where the columns are."""
        names = self.options.column_names()
        placed = self.wanted.placed(first)
        if names is None:
            usual = tuple(range(len(self.wanted.roles)))
            header = placed is not None if self.options.header is None else self.options.header
            if header and placed is None and len(first) > self.wanted.needed:
                raise self._which_columns(first)
            return header, placed if header and placed is not None else usual
        if all(name.isdecimal() for name in names):
            header = placed is not None if self.options.header is None else self.options.header
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

    def _which_columns(self, names: Sequence[str]) -> UserError:
        roles = " and ".join(role[0] for role in self.wanted.roles[: self.wanted.needed])
        return UserError(
            f"{self.file} has the columns {', '.join(names)}: say with --columns which of them are {roles}, "
            f"as in --columns {','.join(list(names)[:2])}"
        )


def split_cells(line: str, layout: RowLayout) -> list[str]:
    """The cells of one line of a table."""
    if layout.kind == "csv":
        return next(csv.reader([line], delimiter=layout.delimiter), [])
    if layout.delimiter == " ":
        return line.split(None, 1) if layout.takes_rest else line.split()
    return line.split(layout.delimiter)
