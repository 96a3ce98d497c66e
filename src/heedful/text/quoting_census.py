"""Counts the rows of a table file that quotation marks may have spoilt: too few of them in CSV, any of them in TSV."""

import re
from collections.abc import Callable, Sequence

OnWarning = Callable[[str], None]

# A field of CSV with more lines than this gets a warning.
MOST_LINES = 20
# At least this many rows of TSV, and this share of them, must look like CSV before there is a warning.
FEWEST_QUOTED = 5
SMALLEST_SHARE = 0.01
# A field as writers of CSV put it between quotation marks: those inside it are doubled, and there are some.
_QUOTED_FIELD = re.compile(rb'(?:^|\t)"[^"\t]*(?:""[^"\t]*)+"(?:\t|$)')


class QuotingCensus:
    """Looks at the rows of a file, and warns at its end."""

    def __init__(self, name: str, on_warning: OnWarning | None) -> None:
        self._name, self._on_warning = name, on_warning
        self._rows = self._quoted = self._long = 0
        self._first_long = ""

    def look_at_fields(self, line: int, cells: Sequence[str]) -> None:
        """Take in a row of CSV that begins on a line."""
        for cell in cells:
            breaks = cell.count("\n")
            if breaks >= MOST_LINES:
                self._long += 1
                self._first_long = self._first_long or (
                    f"line {line}: a field between quotation marks spans {breaks + 1:,} lines"
                )
            line += breaks

    def look_at_tsv(self, lines: Sequence[bytes]) -> None:
        """Take in some lines of TSV."""
        self._rows += len(lines)
        self._quoted += sum(b'""' in line and _QUOTED_FIELD.search(line) is not None for line in lines)

    def finish(self) -> None:
        """Warn about what was found."""
        if self._on_warning is None:
            return
        if self._long:
            others = f" (the first of {self._long:,} such fields)" if self._long > 1 else ""
            self._on_warning(
                f"warning: {self._name}, {self._first_long}{others}, which are read as one text: "
                "a quotation mark may be missing"
            )
        if self._quoted >= max(FEWEST_QUOTED, SMALLEST_SHARE * self._rows):
            self._on_warning(
                f"warning: {self._name}: {self._quoted:,} of {self._rows:,} rows have a field between quotation marks "
                "with doubled ones inside, as CSV has them; TSV has none, so that they are read as part of the texts: "
                "if it is CSV with tabs, name it .csv and give --delimiter tab"
            )
