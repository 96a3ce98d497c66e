"""The limits on texts, checked after the form of a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from heedful.server.front.errors import INVALID, ApiError
from heedful.server.settings import Limits


def listed(texts: Any, limits: Limits) -> list[Any]:
    """One text or several, as a list; an error if the list or a text is too long."""
    several = texts if isinstance(texts, list) else [texts]
    if len(several) > limits.texts:
        raise ApiError(INVALID, f"{len(several)} texts in one request: the server takes {limits.texts}")
    inputs = [tuple(each) if isinstance(each, list) else each for each in several]
    check_length([part for each in inputs for part in (each if isinstance(each, tuple) else (each,))], limits)
    return inputs


def check_length(texts: Iterable[str], limits: Limits) -> None:
    """Refuse a text that is too long."""
    for text in texts:
        if len(text) > limits.characters:
            raise ApiError(INVALID, f"a text has {len(text)} characters: the server takes {limits.characters} a text")


def check_tokens(tokens: int | None, default: int, limits: Limits) -> int:
    """How many tokens to generate; more than the server allows are refused."""
    if tokens is not None and tokens > limits.tokens:
        raise ApiError(INVALID, f"max_tokens is {tokens}: the server generates {limits.tokens} at most")
    return tokens or min(default, limits.tokens)
