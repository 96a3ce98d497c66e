"""Texts as Python users give them, one or several; anything else is refused with a message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from heedful.config import shown
from heedful.errors import UserError

# A text, or a pair of texts.
Text = str | tuple[str, str]


def one_text(text: Any, name: str = "text") -> str:
    """What was given, if it is a text."""
    if not isinstance(text, str):
        raise UserError(f"{name} is {shown(text)}: expected a string")
    return text


def several(values: Any, name: str, expected: str) -> list[Any]:
    """What was given, as a list, if it is an iterable of several things."""
    if isinstance(values, bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        raise UserError(f"{name} is {shown(values)}: expected {expected}")
    return list(values)


def texts_as_list(texts: str | Iterable[str], name: str = "texts") -> list[str]:
    """One text, or several, as a list."""
    if isinstance(texts, str):
        return [texts]
    found = several(texts, name, "a string, or several in a list")
    for number, text in enumerate(found, 1):
        one_text(text, f"text {number} of {name}")
    return found


def refuse_pairs(texts: Iterable[Text]) -> None:
    """Raise a UserError that names the first pair: for models that take single texts."""
    for number, text in enumerate(texts, 1):
        if isinstance(text, tuple):
            raise UserError(f"text {number} is a pair, but this model takes single texts: give it as one string")


def is_one(texts: Text | Iterable[Text]) -> TypeGuard[Text]:
    """Whether it is one text, not several; a tuple is one text of two parts."""
    return isinstance(texts, str | tuple)


def one_text_or_pair(text: Any, name: str = "text") -> Text:
    """What was given, if it is a text or a pair of texts."""
    if isinstance(text, tuple) and len(text) == 2 and all(isinstance(part, str) for part in text):
        return text
    if not isinstance(text, str):
        raise UserError(f"{name} is {shown(text)}: expected a string, or a tuple of two")
    return text


def texts_or_pairs_as_list(texts: Text | Iterable[Text], name: str = "texts") -> list[Text]:
    """One text or pair of texts, or several, as a list."""
    if is_one(texts):
        return [one_text_or_pair(texts, name)]
    found = several(texts, name, "a string, a tuple of two, or several in a list")
    return [one_text_or_pair(text, f"text {number} of {name}") for number, text in enumerate(found, 1)]
