"""What a user says about the layout of a table file."""

from dataclasses import dataclass

from heedful.errors import UserError

_DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ", "\\t": "\t"}


@dataclass(frozen=True)
class RowOptions:
    """What a user says about a table file; what is not said is recognised."""

    columns: str | None = None
    header: bool | None = None
    delimiter: str | None = None

    def check(self) -> None:
        """Raise a UserError for what makes no sense."""
        self.separator()
        names = self.column_names()
        if names is not None and (len(names) < 2 or not all(names) or "0" in names):
            raise UserError(
                f"--columns {self.columns!r}: expected two columns or more, numbered from 1 or named, as in 2,1"
            )
        if names is not None and len(set(names)) < len(names):
            raise UserError(f"--columns {self.columns!r} names a column twice: give a column for each role, as in 2,1")

    def separator(self) -> str | None:
        """The character between columns, if it was given."""
        if self.delimiter is None:
            return None
        found = _DELIMITERS.get(self.delimiter.lower(), self.delimiter)
        if len(found) != 1 or found in '"\r\n' or found.isalnum():
            raise UserError(
                f"--delimiter {self.delimiter!r}: expected tab, comma, semicolon, pipe, space or one character"
            )
        return found

    def column_names(self) -> list[str] | None:
        """The numbers or names of the columns, if they were given."""
        return None if self.columns is None else [name.strip() for name in self.columns.split(",")]

    @property
    def are_numbers(self) -> bool:
        """Whether columns were given, all of them by their numbers."""
        names = self.column_names()
        return names is not None and all(name.isdecimal() for name in names)


RECOGNISED = RowOptions()
