"""Counts the JSON objects of a file whose values cannot be read as texts."""

from heedful.errors import UserError
from heedful.text.column_census import MOST_ODD


class ObjectCensus:
    """Counts the objects of a file and refuses it if too many cannot be read; the first of them is told."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._objects = self._odd = 0
        self._first = ""

    def look(self, line: int, why: str | None) -> None:
        """Count an object, and remember why it cannot be read, if it cannot."""
        self._objects += 1
        if why:
            self._odd += 1
            self._first = self._first or f"line {line}, where {why}"

    def finish(self) -> None:
        """Raise a UserError that says what to do, if there were too many."""
        if self._odd > MOST_ODD * self._objects:
            raise UserError(
                f"{self._name}: {self._odd:,} of {self._objects:,} objects cannot be read; the first is {self._first}: "
                "correct or remove them, or name other fields with --columns"
            )
