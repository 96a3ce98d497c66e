"""The rows of table files, one by one, in bounded memory, each with the number of the line that it begins on."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from heedful.errors import UserError
from heedful.text.column_census import ColumnCensus
from heedful.text.corpus_file import CorpusFile
from heedful.text.object_census import ObjectCensus
from heedful.text.quoting_census import MOST_LINES, OnWarning, QuotingCensus
from heedful.text.row_layout import RowLayout
from heedful.text.text_files import MAX_LINE_BYTES, cut_line
from heedful.text.unread_header import warn_of_unread_header

# Why a row has no cells, besides being blank or over-long.
OTHER_COLUMNS = "number of columns"
NOT_JSON = "not JSON"
COMMENT = "comment"
NULL = "null"
NOT_TEXT = "not text"
LIST_LENGTHS = "list lengths"

_ABSENT = object()

_WORD_NUMBER = re.compile(rb"\d+")


class TableRow(NamedTuple):
    """The wanted cells of a row, as far as it has them, without line breaks; and the line that it begins on.

    `fault` is any other reason why a row has no cells and is to be left out.
    """

    line: int
    cells: list[bytes]
    is_blank: bool = False
    is_over_long: bool = False
    fault: str | None = None


def read_rows(file: CorpusFile, layout: RowLayout, on_warning: OnWarning | None = None) -> Iterator[TableRow]:
    """All rows of a file except its header; blank lines are rows without cells.

    A line break inside a quoted field of CSV, or inside a string of JSON, becomes a carriage return, which the rules
    on control characters then make a space. Too many rows with the wrong number of columns are a UserError at the
    end, where there are also warnings about quotation marks that may be wrong; one about a header comes first.
    """
    census = ColumnCensus(file.shown_name, layout)
    quoting = QuotingCensus(file.shown_name, on_warning)
    warn_of_unread_header(file.shown_name, layout, on_warning)
    if layout.kind == "json":
        rows = _json_rows(file, layout)
    else:
        rows = (_csv_rows if layout.kind == "csv" else _plain_rows)(file, layout, census, quoting)
    if layout.header:
        next((row for row in rows if not row.is_blank), None)
        census.forget_header()
    yield from rows
    census.finish()
    quoting.finish()


def _plain_rows(
    file: CorpusFile, layout: RowLayout, census: ColumnCensus, quoting: QuotingCensus
) -> Iterator[TableRow]:
    numbers = count(1)
    for lines in file.line_blocks():
        if layout.delimiter == "\t":
            quoting.look_at_tsv(lines)
        for raw, number in zip(lines, numbers, strict=False):
            over_long = len(raw) > MAX_LINE_BYTES
            if over_long:
                raw = cut_line(raw)
            if not raw.strip():
                yield TableRow(number, [], is_blank=True)
                continue
            cells = layout.split(raw)
            if layout.comments and raw.startswith(b"#") and layout.is_odd(cells):
                if not layout.is_conllu:
                    yield TableRow(number, [], fault=COMMENT)
            elif over_long or not layout.is_conllu or layout.is_odd(cells) or _WORD_NUMBER.fullmatch(cells[0]):
                yield _row(number, cells, layout, census, over_long)


def _row(number: int, cells: list[bytes], layout: RowLayout, census: ColumnCensus, over_long: bool = False) -> TableRow:
    """The row of some cells: those in the wanted columns, until one is missing."""
    chosen = []
    for column in layout.columns:
        assert isinstance(column, int)
        if column >= len(cells):
            break
        chosen.append(cells[column])
    odd = layout.is_odd(cells) and not over_long
    census.look(number, cells, odd)
    # A row that lacks a needed column is left out for that instead.
    return (
        TableRow(number, [], fault=OTHER_COLUMNS)
        if odd and len(chosen) >= 2
        else TableRow(number, chosen, False, over_long)
    )


def _csv_rows(file: CorpusFile, layout: RowLayout, census: ColumnCensus, quoting: QuotingCensus) -> Iterator[TableRow]:
    over_long: list[int] = []

    def lines() -> Iterator[str]:
        number = 0
        for block in file.line_blocks():
            for raw in block:
                number += 1
                if len(raw) > MAX_LINE_BYTES:  # it was cut, perhaps inside a quoted field
                    over_long.append(number)
                    raw = b""
                # A carriage return within a line does not end it, but the reader would think so.
                yield raw.replace(b"\r", b"\x0b").decode("utf-8", "surrogateescape") + "\n"

    reader = csv.reader(lines(), delimiter=layout.delimiter, strict=True)
    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UserError(
                f"{file.shown_name}, line {first}: this is not valid CSV ({error}): is a quotation mark missing?"
            ) from None
        if reader.line_num - first >= MOST_LINES:
            quoting.look_at_fields(first, cells)
        if over_long:
            over_long.clear()
            yield TableRow(first, [], is_over_long=True)
        elif not any(cell.strip() for cell in cells):
            yield TableRow(first, [], is_blank=True)
        else:
            raw = [cell.replace("\n", "\r").encode("utf-8", "surrogateescape") for cell in cells]
            yield _row(first, raw, layout, census)


def _json_rows(file: CorpusFile, layout: RowLayout) -> Iterator[TableRow]:
    number = 0
    census = ObjectCensus(file.shown_name)
    for lines in file.line_blocks():
        for raw in lines:
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                yield TableRow(number, [], is_over_long=True)
            elif not raw.strip():
                yield TableRow(number, [], is_blank=True)
            else:
                yield from _rows_of_object(number, raw, layout, census)
    census.finish()


def _rows_of_object(number: int, raw: bytes, layout: RowLayout, census: ObjectCensus) -> Iterator[TableRow]:
    """The row of an object; for one that holds lists, like sentences of words and tags, a row per place and a blank."""
    try:
        content = json.loads(raw.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        yield TableRow(number, [], fault=NOT_JSON)
        return
    names = [str(column) for column in layout.columns]
    values = [_value(content, name) for name in names]
    if not all(isinstance(value, list) for value in values):
        row, why = _row_of_values(number, names, values)
        census.look(number, why)
        yield row
        return
    lengths = [len(value) for value in values]
    if len(set(lengths)) > 1:
        counted = ", ".join(f"{name} has {length:,}" for name, length in zip(names, lengths, strict=True))
        census.look(number, f"the lists have different lengths: {counted}")
        yield TableRow(number, [], fault=LIST_LENGTHS)
        return
    rows = [_row_of_values(number, names, list(together)) for together in zip(*values, strict=True)]
    census.look(number, next((why for _, why in rows if why), None))
    yield from (row for row, _ in rows)
    yield TableRow(number, [], is_blank=True)


def _value(content: Any, name: str) -> Any:
    """What an object holds under a name, or under one inside another, as in translation.en; or `_ABSENT`."""
    if isinstance(content, dict) and name in content:
        return content[name]
    outer, dot, inner = name.partition(".")
    return _value(content[outer], inner) if dot and isinstance(content, dict) and outer in content else _ABSENT


def cells_of_object(line: str, names: Sequence[str]) -> list[str]:
    """What a line with a JSON object holds under some names, each as text; none if it is not JSON."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return []
    values = (_value(content, name) for name in names)
    return [value if isinstance(value, str) else json.dumps(None if value is _ABSENT else value) for value in values]


def _row_of_values(number: int, names: list[str], values: list[Any]) -> tuple[TableRow, str | None]:
    """Strings and numbers as cells, until a value is absent; and why there is no row, if a value is something else."""
    cells: list[bytes] = []
    for name, value in zip(names, values, strict=True):
        if value is _ABSENT or (value is None and len(cells) >= 2):  # a second text that is null is none
            break
        if value is None:
            return TableRow(number, [], fault=NULL), f"{name} is null"
        if not isinstance(value, str | int | float):
            what = "a list" if isinstance(value, list) else "an object"
            return TableRow(number, [], fault=NOT_TEXT), f"{name} is {what}, where a text was expected"
        text = value if isinstance(value, str) else json.dumps(value)
        cells.append(text.replace("\n", "\r").encode("utf-8", "surrogatepass"))
    return TableRow(number, cells), None
