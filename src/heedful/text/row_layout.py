"""How the rows of a table file are laid out: TSV, CSV, JSON lines or words between spaces, and in which columns."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

from heedful.text.wanted_columns import WantedColumns

RowKind = Literal["plain", "csv", "json"]


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
    # Whether this is CoNLL-U, whose comments, ranges of words (1-2) and empty nodes (1.1) are skipped.
    is_conllu: bool = False
    # Columns of the header, or of most of the first rows: a row with another number of them is left out.
    width: int | None = field(default=None, compare=False)
    # Whether too many such rows stop the run: not where the user has counted the columns.
    stops: bool = field(default=True, compare=False)
    # Whether a line that begins with # and is not a row is a comment.
    comments: bool = field(default=False, compare=False)
    # Whether the layout was recognised by labels that no text begins with: a line without one lacks its label.
    marked_labels: bool = field(default=False, compare=False)
    # The first row, if it looks like a header and is read like the others, because nobody said what it is.
    unread_header: tuple[str, ...] = field(default=(), compare=False)

    @property
    def present(self) -> tuple[int | str, ...]:
        """Those of the wanted columns that the file has."""
        return tuple(
            place for place in self.columns if isinstance(place, str) or self.width is None or place < self.width
        )

    def choices(self) -> dict[str, Any]:
        """Everything by which two readings of a file may differ."""
        content = asdict(self)
        # These follow from the content of the file; what was added later is left out where it changes nothing.
        followed = ("width", "stops", "comments", "marked_labels", "unread_header")
        for name in (*followed, *(() if self.is_conllu else ("is_conllu",))):
            del content[name]
        return content

    def is_usual(self, wanted: WantedColumns) -> bool:
        """Whether this is TSV without a header, whose first columns are the wanted ones."""
        usual = tuple(range(len(wanted.roles)))
        return self == RowLayout(columns=usual)

    def description(self, wanted: WantedColumns) -> str:
        """The layout in words."""
        names = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons"}
        kind = "JSON objects" if self.kind == "json" else f"columns between {names.get(self.delimiter, self.delimiter)}"
        kind = "CoNLL-U" if self.is_conllu else kind
        places = (place if isinstance(place, str) else f"column {place + 1}" for place in self.present)
        roles = ", ".join(f"{role[0]} is {place}" for role, place in zip(wanted.roles, places, strict=False))
        return f"{kind}{', with a header' if self.header else ''}: {roles}"

    def split(self, line: bytes) -> list[bytes]:
        """The cells of a line of a plain table, all that are wanted and perhaps one too many."""
        if self.delimiter != " ":
            return line.split(*self._splitting)
        cells = line.split(None, 1) if self.takes_rest else line.split()
        return [] if self.marked_labels and not is_marked_label(cells[0]) else cells

    @cached_property
    def _splitting(self) -> tuple[bytes, int]:
        most = 1 + max(column for column in self.columns if isinstance(column, int))
        return self.delimiter.encode(), max(most, self.width or 0)

    def is_odd(self, cells: Sequence[bytes]) -> bool:
        """Whether a row has the wrong number of columns, apart from extra blank ones at its end."""
        if self.width is None or len(cells) == self.width:
            return False
        return len(cells) < self.width or any(cell.strip() for cell in cells[self.width :])


def is_marked_label(word: bytes) -> bool:
    """Whether a word is a label that no text begins with: COARSE:fine of TREC, or __label__name of fastText."""
    return b":" in word[1:-1] or word.startswith(b"__label__")


def read_as(layouts: Mapping[str, RowLayout], wanted: WantedColumns) -> list[str]:
    """Lines that say how files, given by their names, are laid out."""
    return [f"{name} is read as {layout.description(wanted)}" for name, layout in layouts.items()]


def shown_cells(cells: Sequence[str]) -> str:
    """The cells of a row with their numbers, as messages show them."""
    texts = (cell.strip() for cell in cells)
    shortened = (text if len(text) <= 30 else f"{text[:27]}..." for text in texts)
    return ", ".join(f"{number} {text!r}" for number, text in enumerate(shortened, 1))


def split_cells(line: str, layout: RowLayout) -> list[str]:
    """The cells of one line of a table."""
    if layout.kind == "csv":
        return next(csv.reader([line], delimiter=layout.delimiter), [])
    if layout.delimiter == " ":
        return line.split(None, 1) if layout.takes_rest else line.split()
    return line.split(layout.delimiter)
