"""What the columns of a table seem to hold, by the cells of its first rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from heedful.text.corpus_file import CorpusFile
from heedful.text.row_layout import RowLayout
from heedful.text.rows import read_rows
from heedful.text.wanted_columns import WantedColumns

_NUMBER = re.compile(r"\s*[-+]?\d[\d.,-]*\s*")
_ROWS_LOOKED_AT = 1000
_COLUMNS_LOOKED_AT = 64
# The first row may be a header, and a number in a single other row is not evidence.
_FEWEST_ROWS = 3
# A column with a greater share of distinct cells than this holds no labels.
_MOST_LABELS = 0.5
# Texts shorter than this share of the longest column, on average, are something else.
_SHORTEST_TEXT = 0.5


def first_rows(file: CorpusFile, layout: RowLayout) -> list[list[str]]:
    """The first rows of a table that are not blank, with all their columns, or those that are read of JSON objects."""
    if layout.kind != "json":
        layout = replace(layout, columns=tuple(range(_COLUMNS_LOOKED_AT)), header=False, width=None)
    rows = (row.cells for row in islice(read_rows(file, layout), _ROWS_LOOKED_AT))
    return [[cell.decode("utf-8", "replace") for cell in cells] for cells in rows if cells]


def by_column(rows: Sequence[Sequence[str]]) -> dict[int, list[str]]:
    """The cells of each column, by its place; rows may lack some."""
    width = max(map(len, rows), default=0)
    return {place: [row[place] for row in rows if place < len(row)] for place in range(width)}


def are_numbers(cells: Sequence[str]) -> bool:
    """Whether a column holds numbers and nothing else."""
    return bool(cells) and all(_NUMBER.fullmatch(cell) for cell in cells)


def is_name_over_numbers(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether a column holds nothing but numbers below its first cell, which is no number."""
    if len(rows) < _FEWEST_ROWS or column >= len(rows[0]) or are_numbers([rows[0][column]]):
        return False
    return are_numbers(by_column(rows[1:]).get(column, []))


def looks_like_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has a name over a column of numbers."""
    return any(is_name_over_numbers(rows, column) for column in range(len(rows[0]) if rows else 0))


def likely_columns(columns: Mapping[int, Sequence[str]], wanted: WantedColumns) -> list[int]:
    """The columns that look like those that are wanted, in the order of the roles; none if that is not clear."""
    texts = {place: sum(map(len, cells)) / len(cells) for place, cells in columns.items() if not are_numbers(cells)}
    if not wanted.may_be_numbers:
        return list(texts)[:2] if len(texts) > 1 else []
    different = {place: len(set(cells)) for place, cells in columns.items()}
    labels = [place for place, count in different.items() if 1 < count <= _MOST_LABELS * len(columns[place])]
    if not labels:
        return []
    label = min(labels, key=different.__getitem__)
    texts.pop(label, None)
    long = [place for place in texts if texts[place] >= _SHORTEST_TEXT * max(texts.values())][: len(wanted.roles) - 1]
    if not long:
        return []
    return [label, *long] if wanted.roles[0][0] in wanted.may_be_numbers else [*long, label]
