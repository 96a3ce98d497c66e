"""A table whose texts would be a column of numbers, such as ids or scores."""

import shlex
from collections.abc import Sequence

from heedful.errors import UserError
from heedful.text.column_kinds import are_numbers, by_column, first_rows, is_name_over_numbers, likely_columns
from heedful.text.corpus_file import CorpusFile
from heedful.text.row_layout import RowLayout, shown_cells
from heedful.text.wanted_columns import WantedColumns


def refuse_number_columns(file: CorpusFile, layout: RowLayout, wanted: WantedColumns) -> None:
    """Raise a UserError if a column that nobody chose holds nothing but numbers, and there are others to choose."""
    if layout.kind == "json":  # its fields were chosen by their names
        return
    rows = first_rows(file, layout)
    # The first row may be a header, and a number in a single other row is not evidence.
    if len(rows) < 3 or max(map(len, rows)) <= wanted.needed:
        return
    columns = by_column(rows[1:])
    for role, column in zip(wanted.roles[: wanted.needed], layout.columns, strict=False):
        assert isinstance(column, int)
        if role[0] not in wanted.may_be_numbers and are_numbers(columns.get(column, [])):
            likely = likely_columns(columns, wanted) or [1, 2]
            raise UserError(
                f"{file.shown_name}: column {column + 1} would be the {role[0]}, but holds nothing but numbers; the "
                f"first row is {shown_cells(rows[0])}: say with --columns which columns are "
                f"{' and '.join(names[0] for names in wanted.roles[: wanted.needed])}, as in "
                f"{_hint(rows, likely, is_name_over_numbers(rows, column))}"
            )


def _hint(rows: list[list[str]], places: Sequence[int], has_header: bool) -> str:
    """The options that read these columns: by their names, if the first row gives each of them one."""
    numbers = ",".join(str(place + 1) for place in places)
    if not has_header:
        return f"--columns {numbers}"
    header = [name.strip() for name in rows[0]]
    names = [header[place] for place in places if place < len(header)]
    unclear = any(not name or "," in name or name.isdecimal() or header.count(name) > 1 for name in names)
    if unclear or len(names) < len(places):
        return f"--columns {numbers} --header"
    return shlex.join(["--columns", ",".join(names)])
