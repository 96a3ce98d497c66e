"""Dates, amounts, names and lists in one language, as CLDR (through babel) writes them."""

import unicodedata
from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from functools import cache
from typing import Any, Literal

from babel import Locale, localedata
from babel.dates import (
    format_date,
    format_skeleton,
    format_time,
    format_timedelta,
    get_datetime_format,
    get_day_names,
    get_month_names,
)
from babel.lists import format_list
from babel.numbers import format_currency, format_decimal, format_percent

DateWidth = Literal["full", "long"]
ListStyle = Literal["standard", "or"]
RelativeUnit = Literal["second", "minute", "hour", "day", "week", "month", "year"]
TimeWidth = Literal["medium", "short"]
UnitWidth = Literal["long", "short"]

# The lengths of months and years that babel assumes for "in 3 months".
_UNIT_SECONDS: dict[RelativeUnit, int] = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 24 * 3600,
    "week": 7 * 24 * 3600,
    "month": 30 * 24 * 3600,
    "year": 365 * 24 * 3600,
}

# Invisible marks that only control the direction of the writing around them.
_DIRECTION_MARKS = "\u061c\u200e\u200f"


def tidy(text: str) -> str:
    """Give the text in NFC, with plain spaces for odd ones (U+00A0, U+202F ...), without direction marks."""
    characters = unicodedata.normalize("NFC", text)
    spaced = (" " if character.isspace() else character for character in characters)
    return "".join(character for character in spaced if character not in _DIRECTION_MARKS).strip()


@cache
def _separate_from_other_locales(language: str) -> None:
    """Give a locale its own data.

    Locales share the parts that they inherit from CLDR's root, and babel writes into these when it looks up an alias,
    so the first language to ask for its month names could set them for later ones too.
    """
    data = localedata.load(language)
    data.update(_with_own_dictionaries(data))


def _with_own_dictionaries(data: dict[str, Any]) -> dict[str, Any]:
    return {key: _with_own_dictionaries(value) if isinstance(value, dict) else value for key, value in data.items()}


class Phrasebook:
    """One language: the same call on the phrasebooks of two languages gives translations of each other."""

    def __init__(self, language: str) -> None:
        _separate_from_other_locales(language)
        self._locale = Locale.parse(language)
        self._unit_patterns = localedata.load(language)["unit_patterns"]

    def day(self, day: date, width: DateWidth) -> str:
        """Write a date in one of the standard formats."""
        return format_date(day, width, locale=self._locale)

    def day_fields(self, day: date, skeleton: str) -> str:
        """Write the fields of a date that a CLDR skeleton such as "yMMMd" asks for."""
        return format_skeleton(skeleton, day, locale=self._locale)

    def time_of_day(self, moment: time, width: TimeWidth) -> str:
        """Write a time of day on the language's usual clock (12 or 24 hours)."""
        return format_time(moment, width, locale=self._locale)

    def day_and_time(self, day: date, moment: time, width: DateWidth) -> str:
        """Write a date and a time of day, to the minute."""
        glue = str(get_datetime_format(width, locale=self._locale)).replace("'", "")
        return glue.replace("{0}", self.time_of_day(moment, "short")).replace("{1}", self.day(day, width))

    def relative(self, count: int, unit: RelativeUnit) -> str:
        """Write how far off something is: "in 3 days", or "3 days ago" when the count is negative."""
        # The infinite threshold keeps babel from changing to a longer unit.
        return format_timedelta(
            count * _UNIT_SECONDS[unit],
            granularity=unit,
            threshold=float("inf"),
            add_direction=True,
            locale=self._locale,
        )

    def measure(self, value: Decimal, unit: str, width: UnitWidth) -> str:
        """Write a value with its unit, as words ("12 miles") or as symbols ("12 mi")."""
        widths = self._unit_patterns[unit]
        # CLDR leaves out what can be inherited, and babel's own format_unit does not look it up: a missing width is the
        # short one, and a missing plural form is "other".
        forms = widths[width] if "other" in widths.get(width, {}) else widths["short"]
        pattern: str = forms.get(self._locale.plural_form(value)) or forms["other"]
        return pattern.replace("{0}", self.number(value))

    def price(self, amount: Decimal, currency: str) -> str:
        """Write an amount with the currency's symbol and its usual decimals."""
        return format_currency(amount, currency, locale=self._locale)

    def money(self, amount: int, currency: str) -> str:
        """Write a whole amount with the currency's name: "5 euros"."""
        return format_currency(
            amount, currency, "#,##0", locale=self._locale, currency_digits=False, format_type="name"
        )

    def number(self, value: Decimal) -> str:
        """Write a number with the language's separators."""
        return format_decimal(value, locale=self._locale, decimal_quantization=False)

    def percent(self, percentage: Decimal) -> str:
        """Write a percentage."""
        return format_percent(percentage / 100, locale=self._locale, decimal_quantization=False)

    def country(self, code: str) -> str:
        """Name a country."""
        return str(self._locale.territories[code])

    def language(self, code: str) -> str:
        """Name a language."""
        return str(self._locale.languages[code])

    def month(self, number: int) -> str:
        """Name a month (1 to 12), as it stands alone."""
        return str(get_month_names("wide", "stand-alone", locale=self._locale)[number])

    def weekday(self, number: int) -> str:
        """Name a day of the week (0 is Monday), as it stands alone."""
        return str(get_day_names("wide", "stand-alone", locale=self._locale)[number])

    def listing(self, items: Sequence[str], style: ListStyle) -> str:
        """Join items into "a, b, and c" or "a, b, or c"."""
        return format_list(items, style, locale=self._locale)
