"""Settings are frozen dataclasses; this file turns them into plain data and back, strictly."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import UserError

Config = TypeVar("Config")

# The most characters of a wrong value that an error shows.
SHOWN = 80
# Digits of a whole number in JSON; Python takes no more than 4,300.
LONGEST_NUMBER = 4000


def to_dict(config: Any) -> dict[str, Any]:
    """Nested plain data that `from_dict` turns back into an equal object."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def from_dict(kind: type[Config], data: dict[str, Any], where: str = "") -> Config:
    """Build `kind` from nested data; an unknown key or a wrong type is an error that names the place."""
    assert dataclasses.is_dataclass(kind)
    if not isinstance(data, dict):
        raise UserError(f"setting {where!r} is {shown(data)}, expected a table of settings")
    known = [each.name for each in dataclasses.fields(kind)]
    for key in data:
        if key not in known:
            raise UserError(f"unknown setting {shown(join(where, key))}: {nearest(key, known)}")
    hints = _hints(kind)
    values = {key: _convert(hints[key], value, join(where, key)) for key, value in data.items()}
    missing = [
        each.name
        for each in dataclasses.fields(kind)
        if each.name not in values
        and each.default is dataclasses.MISSING
        and each.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise UserError(f"setting {join(where, missing[0])!r} is missing")
    return kind(**values)


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:  # by a function that reads the setting
        return arguments[1](value, where)
    if hint is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _convert(next(each for each in arguments if each is not type(None)), value, where)
    if origin is typing.Literal:
        if value not in arguments:
            raise UserError(f"setting {where!r} is {shown(value)}: {nearest(value, list(arguments))}")
        return value
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return from_dict(typing.cast(type, hint), value, where)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_convert(arguments[0], each, where) for each in value)
    if hint is float and type(value) is int and abs(value) < 2**53:
        return float(value)
    # `type(...) is` and not isinstance: a bool is not an int here.
    if isinstance(hint, type) and type(value) is hint and not (isinstance(value, float) and not math.isfinite(value)):
        return value
    raise UserError(f"setting {where!r} is {shown(value)}, expected {_expected(hint)}")


def _expected(hint: Any) -> str:
    if dataclasses.is_dataclass(hint):
        return "a table of settings"
    if typing.get_origin(hint) is tuple:
        return "a list, as in [1, 2]"
    words = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text in quotes"}
    return words.get(hint, str(hint))


def shown(value: Any) -> str:
    """A wrong value as an error shows it: on one line, and cut if it is long."""
    try:
        text = " ".join(line.strip() for line in repr(value).splitlines())
    except (RecursionError, ValueError):  # nested too deeply, or a number with thousands of digits
        return f"a {type(value).__name__} that is too large to show"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def require(value: float, name: str, lowest: float, below: float = float("inf")) -> None:
    """Raise a UserError unless lowest <= value < below."""
    if not lowest <= value < below:
        upper = f" and below {below:g}" if below != float("inf") else ""
        raise UserError(f"{name} is {value}, but must be at least {lowest:g}{upper}")


def require_whole(value: object, name: str, lowest: int, largest: int) -> None:
    """Raise a UserError unless a value is a whole number, lowest <= value <= largest."""
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= largest:
        raise UserError(f"{name} is {shown(value)}, but must be a whole number from {lowest} to {largest:,}")


def known_size(vocabulary_size: int | None) -> int:
    """The size of a vocabulary, without which no model can be built."""
    if vocabulary_size is None:
        raise UserError("the model needs to know how many tokens there are: give vocabulary_size")
    return vocabulary_size


def join(where: str, key: str) -> str:
    """The dotted name of a key inside a place."""
    return f"{where}.{key}" if where else key


def nearest(key: Any, known: list[str]) -> str:
    """A hint at the known name that is closest to a misspelt one."""
    import difflib

    close = difflib.get_close_matches(key[:SHOWN], known, n=1, cutoff=0.5) if isinstance(key, str) else []
    return f"did you mean {close[0]!r}?" if close else f"choose one of {', '.join(known)}"


def merge(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """`base` with the values of `other` over it, table by table."""
    merged = dict(base)
    for key, value in other.items():
        inner = merged.get(key)
        merged[key] = merge(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged


def parse_assignment(text: str) -> dict[str, Any]:
    """`model.decoder.num_layers=3` as nested data; the value is read as TOML, or else as a bare word."""
    import tomllib

    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise UserError(f"--set {text!r}: expected NAME=VALUE, as in model.decoder.num_layers=3")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    return nested(name.strip(), parsed)


def nested(name: str, value: Any) -> dict[str, Any]:
    """The value of a setting, by its dotted name, as nested data."""
    for key in reversed(name.split(".")):
        value = {key: value}
    return typing.cast(dict[str, Any], value)


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot read the settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    data = read_json_value(path)
    if not isinstance(data, dict):
        raise UserError(f"{path} does not hold a JSON object")
    return data


def read_json_value(path: Path) -> Any:
    """What a JSON file holds, read as strictly as `parse_json` does."""
    try:
        return parse_json(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON: {error}") from None


def parse_json(text: str) -> Any:
    """What JSON holds; a duplicate key, a number too large to hold and half a character are a ValueError."""
    parsing = _JsonParsing()
    try:
        found = json.loads(
            text,
            object_pairs_hook=parsing.table,
            parse_constant=parsing.number,
            parse_float=parsing.number,
            parse_int=parsing.whole_number,
        )
        if parsing.wrong:  # in a list, which has no key
            raise ValueError(parsing.wrong)
        if "\\ud" in text.lower():  # half a surrogate pair is not text that could be shown
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start]).strip("'")
        raise ValueError(f"{half} is half of a character, which is not text") from None
    return found


class _JsonParsing:
    """Takes the parts of a JSON text, and remembers what is wrong with a number until its key is known."""

    def __init__(self) -> None:
        self.wrong: str | None = None

    def number(self, text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            self.wrong = self.wrong or f"{text[:SHOWN]} is not a finite number"
        return number

    def whole_number(self, text: str) -> int | float:
        if len(text) <= LONGEST_NUMBER:
            return int(text)
        self.wrong = self.wrong or f"{text[:SHOWN]}... is too large a number: it has {len(text)} digits"
        return math.inf

    def table(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self._check_numbers(pairs)
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise ValueError(f"the key {shown(name)} is there twice")
            found[name] = value
        return found

    def _check_numbers(self, pairs: list[tuple[str, Any]]) -> None:
        """Raise what is wrong, if it is in this table; it may be in one around it, whose other parts come first."""
        for name, value in pairs if self.wrong else ():
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"{shown(name)}: {self.wrong}")
