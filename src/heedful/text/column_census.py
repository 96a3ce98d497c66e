"""Counts the rows of a table file that have the wrong number of columns."""

from collections.abc import Sequence

from heedful.errors import UserError
from heedful.text.row_layout import RowLayout

# A greater share of such rows means that texts contain the delimiter, or that the file is laid out in another way.
MOST_ODD = 0.01
_NAMES = {"\t": "tab", " ": "space", ",": "comma", ";": "semicolon", "|": "pipe"}
_LONGEST_SHOWN = 120


class ColumnCensus:
    """Counts the rows of a file and refuses it if too many are odd; the first such row is shown."""

    def __init__(self, name: str, layout: RowLayout) -> None:
        self._name, self._layout = name, layout
        self._rows = self._odd = 0
        self._first: tuple[int, str] | None = None

    def look(self, line: int, cells: Sequence[bytes], odd: bool) -> None:
        """Count a row that is not blank."""
        self._rows += 1
        if odd:
            self._odd += 1
            if self._first is None:
                text = self._layout.delimiter.join(cell.decode("utf-8", "replace") for cell in cells)
                shown = text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."
                more = len(cells) > (self._layout.width or 0)
                self._first = line, f"which has {'more' if more else len(cells)}: {shown!r}"

    def count(self, rows: int) -> None:
        """Count rows that are as they should be."""
        self._rows += rows

    def forget_header(self) -> None:
        """Take back what was counted so far, which was the header."""
        self._rows, self._odd, self._first = 0, 0, None

    def finish(self) -> None:
        """Raise a UserError that says what to do, if there were too many."""
        layout = self._layout
        if self._first is None or not layout.stops or self._odd <= MOST_ODD * self._rows:
            return
        delimiter = _NAMES.get(layout.delimiter, layout.delimiter)
        columns = f"{layout.width} column{'s' if layout.width != 1 else ''}"
        usual = f"{columns} of its header" if layout.header else f"{columns} that most of its first rows have"
        if layout.kind == "csv":
            advice = f"put texts that hold a {delimiter} between quotation marks, or give another --delimiter"
        else:
            advice = (
                f"take each {delimiter} out of the texts, or write the file as .csv with texts between quotation marks"
            )
        places = ",".join(str(column + 1) for column in layout.present if isinstance(column, int))
        line, row = self._first
        raise UserError(
            f"{self._name}: {self._odd:,} of {self._rows:,} rows do not have the {usual}; the first is line {line}, "
            f"{row}; {advice}; columns that are given by number, as in --columns {places}, are read from the rows that "
            "have as many columns as most, and the others are left out"
        )
