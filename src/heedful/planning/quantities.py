"""Amounts with a letter for thousands, millions and so on: as they are typed, and as they are shown."""

from __future__ import annotations

import re

from heedful.errors import UserError

LETTERS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15}
UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def amount(text: str, what: str, lowest: float = 0.0, largest: float = float("inf")) -> float:
    """`80G`, `300B` or `1.5e12` as a number above 0 and within limits; `what` names it in an error."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]{1,3})?)\s*([kmgbtp]?)", text.strip().lower())
    value = float(match[1]) * LETTERS[match[2].upper()] if match else 0.0
    if not 0 < value < float("inf"):
        raise UserError(f"{what} is {text!r}: write it as a number above 0 with a letter, such as 80G, 300B or 400T")
    if not lowest <= value <= largest:
        raise UserError(
            f"{what} is {text!r}, but must be between {shown(lowest)} and {shown(largest)}: "
            "write it with a letter, such as 80G, 300B or 400T"
        )
    return value


def shown(value: float, unit: str = "") -> str:
    """A number to three digits, with the letter that suits it: 1.52 GB."""
    for size, letter in UNITS:
        # What would round up to a thousand of one letter is one of the next, if there is one.
        if value >= size * 0.9995:
            share = value / size
            return f"{f'{share:.3g}' if share < 999.5 else f'{share:,.0f}'} {letter}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def count(value: float) -> str:
    """A number of things in words: 174.6 billion."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{value / size:,.1f} {word}"
    return f"{value:,.0f}"
