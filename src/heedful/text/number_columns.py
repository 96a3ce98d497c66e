"""A table whose texts would be a column of numbers, such as ids or scores."""

import re
from dataclasses import replace
from itertools import islice

from heedful.errors import UserError
from heedful.text.corpus_file import CorpusFile
from heedful.text.row_layout import RowLayout
from heedful.text.rows import read_rows
from heedful.text.wanted_columns import WantedColumns

_NUMBER = re.compile(rb"\s*[-+]?\d[\d.,-]*\s*")
_ROWS_LOOKED_AT = 100
_COLUMNS_LOOKED_AT = 64


def refuse_number_columns(file: CorpusFile, layout: RowLayout, wanted: WantedColumns) -> None:
    """Raise a UserError if a column that nobody chose holds nothing but numbers, and there are others to choose."""
    if layout.kind == "json":  # its fields were chosen by their names
        return
    whole = replace(layout, columns=tuple(range(_COLUMNS_LOOKED_AT)), header=False, width=None)
    rows = [row.cells for row in islice(read_rows(file, whole), _ROWS_LOOKED_AT) if row.cells]
    # The first row may be a header; where every row has its number, one of them is not evidence.
    if len(rows) < 3 or max(map(len, rows)) <= wanted.needed:
        return
    for role, column in zip(wanted.roles[: wanted.needed], layout.columns, strict=False):
        assert isinstance(column, int)
        if role[0] in wanted.may_be_numbers:
            continue
        cells = [row[column] for row in rows[1:] if column < len(row)]
        if cells and all(_NUMBER.fullmatch(cell) for cell in cells):
            raise UserError(
                f"{file.shown_name}: column {column + 1} would be the {role[0]}, but holds nothing but numbers; the "
                f"first row is {_shown(rows[0])}: say with --columns which columns are "
                f"{' and '.join(names[0] for names in wanted.roles[: wanted.needed])}, as in --columns 2,3"
            )


def _shown(cells: list[bytes]) -> str:
    texts = (cell.decode("utf-8", "replace").strip() for cell in cells)
    shortened = (text if len(text) <= 30 else f"{text[:27]}..." for text in texts)
    return ", ".join(f"{number} {text!r}" for number, text in enumerate(shortened, 1))
