"""A foreign configuration: values are asked for by name and type, and a wrong one is an error that says where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from heedful.config import shown
from heedful.errors import UserError

if TYPE_CHECKING:
    from heedful.interop.foreign_tokenizer import ForeignTokenizer

Kind = TypeVar("Kind")


class ForeignConfig:
    """The settings in a file; those that are null count as not given.

    With config.json come the tokenizer and the settings for images, if they exist.
    """

    def __init__(
        self,
        file: Path,
        values: dict[str, Any],
        tokens: ForeignTokenizer | None = None,
        images: ForeignConfig | None = None,
    ) -> None:
        self.file = file
        self.tokens = tokens
        self.images = images
        self._values = values

    @property
    def names(self) -> list[str]:
        """The names of all settings."""
        return list(self._values)

    def error(self, text: str) -> UserError:
        """The error for a mistake in this file."""
        return UserError(f"{self.file}: {text}")

    def value(self, name: str, default: Any = None) -> Any:
        """A setting of any type."""
        found = self._values.get(name)
        return default if found is None else found

    def integer(self, name: str, default: int | None = None, lowest: int = 1, below: int | None = None) -> int:
        """A whole number from `lowest` up."""
        found = self._typed(name, default, int, "a whole number")
        self._within(name, found, lowest, below)
        return found

    def optional_integer(self, name: str, lowest: int = 1) -> int | None:
        """A whole number, or None if it is not given."""
        return None if self._values.get(name) is None else self.integer(name, lowest=lowest)

    def token(self, name: str, default: int | None, vocabulary: int) -> int:
        """The id of a token in a vocabulary; if the default is not in it, the setting must be given."""
        return self.integer(name, default, 0, vocabulary)

    def number(self, name: str, default: float, lowest: float = 0.0, below: float | None = None) -> float:
        """A number from `lowest` up."""
        found = self._values.get(name)
        if type(found) is int and abs(found) < 2**53:
            self._within(name, found, lowest, below)
            return float(found)
        number = self._typed(name, default, float, "a number")
        self._within(name, number, lowest, below)
        return number

    def share(self, name: str, default: float) -> float:
        """A number from 0 to below 1, such as dropout."""
        return self.number(name, default, 0.0, 1.0)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        return self._typed(name, default, bool, "true or false")

    def text(self, name: str, default: str) -> str:
        """A word."""
        return self._typed(name, default, str, "a text")

    def require(self, name: str, supported: Any, default: Any) -> None:
        """Refuse a model that differs from ours in a way that no setting covers."""
        found = self.value(name, default)
        if type(found) is not type(supported) or found != supported:
            raise self.error(f"{name} is {shown(found)}, and only {supported!r} is supported")

    def _typed(self, name: str, default: Kind | None, kind: type[Kind], expected: str) -> Kind:
        found = self._values.get(name)
        if found is None:
            if default is None:
                raise self.error(f"the setting {name!r} is missing")
            return default
        # `type(...) is` and not isinstance: a bool is not an int here.
        if type(found) is not kind:
            raise self.error(f"{name} is {shown(found)}, expected {expected}")
        return found

    def _within(self, name: str, value: float, lowest: float, below: float | None) -> None:
        if not (lowest <= value and (below is None or value < below)):
            upper = "" if below is None else f" and below {below:g}"
            raise self.error(f"{name} is {shown(value)}, but must be at least {lowest:g}{upper}")
