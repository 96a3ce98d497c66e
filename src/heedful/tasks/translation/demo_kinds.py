"""The kinds of phrases of the demo corpus: each draws a value without a language, to be written in any language.

English must name the value unambiguously, so that a source alone determines its translation, whatever the
target language. Therefore some things are never drawn:

- abbreviated months in May without a weekday: "May 5" is also the unabbreviated form;
- the second of two formats that are the same in English but not in other languages: the medium date besides the
  skeleton yMMMd, a 12-hour clock in every language besides the usual one, short days ("3 days") besides long ones;
- two-digit years, and week numbers, which are counted differently from country to country;
- list items that contain ", ", "and" or "or" themselves.
"""

from collections.abc import Callable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from random import Random
from typing import TypeVar

from heedful.tasks.translation.demo_phrases import DateWidth, ListStyle, Phrasebook, RelativeUnit, UnitWidth

Item = TypeVar("Item")
Phrase = Callable[[Phrasebook], str]
Draw = Callable[[Random], Phrase]

DATE_WIDTHS: tuple[DateWidth, ...] = ("full", "long")
UNIT_WIDTHS: tuple[UnitWidth, ...] = ("long", "short")
LIST_STYLES: tuple[ListStyle, ...] = ("standard", "or")

SKELETONS = ("yMMMEd", "MMMEd", "MMMMd", "yMMMM", "yQQQQ")
ABBREVIATED_SKELETONS = ("yMMMd", "MMMd", "yMMM")
MAY = 5

FIRST_DAY = date(1990, 1, 1)
NUM_DAYS = (date(2040, 1, 1) - FIRST_DAY).days
DAYS_OF_LEAP_YEAR = [date(2000, 1, 1) + timedelta(days=number) for number in range(366)]
QUARTERS_OF_HOURS = [time(hour, minute) for hour in range(24) for minute in range(0, 60, 15)]

COUNTRIES = (
    "AR", "AT", "AU", "BD", "BE", "BG", "BR", "CA", "CH", "CL", "CN", "CO", "CZ", "DE", "DK", "EE", "EG",
    "ES", "ET", "FI", "FR", "GB", "GH", "GR", "HR", "HU", "ID", "IE", "IL", "IN", "IQ", "IS", "IT", "JP",
    "KE", "KR", "LT", "LU", "LV", "MA", "MX", "MY", "NG", "NL", "NO", "NZ", "PE", "PH", "PK", "PL", "PT",
    "RO", "RS", "RU", "SA", "SE", "SK", "SN", "TH", "TN", "UA", "US", "VN", "ZA",
)  # fmt: skip
LANGUAGES = (
    "ar", "bg", "ca", "cs", "cy", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr", "ga", "he",
    "hi", "hr", "hu", "id", "is", "it", "ja", "ko", "la", "lt", "lv", "ms", "nl", "pl", "pt", "ro", "ru",
    "sk", "sr", "sv", "sw", "ta", "th", "tr", "uk", "ur", "vi", "zh",
)  # fmt: skip
CURRENCIES_WITH_CENTS = ("AUD", "BRL", "CAD", "CNY", "EUR", "GBP", "ILS", "INR", "MXN", "NZD", "USD")
CURRENCIES_WITHOUT_CENTS = ("JPY", "KRW")
NAMED_CURRENCIES = ("AUD", "BRL", "CAD", "CHF", "DKK", "EUR", "GBP", "INR", "JPY", "MXN", "NOK", "SEK", "USD")
UNITS = (
    "area-hectare", "area-square-meter", "digital-gigabyte", "energy-kilowatt-hour", "length-centimeter",
    "length-foot", "length-inch", "length-kilometer", "length-meter", "length-mile", "mass-gram",
    "mass-kilogram", "mass-ounce", "mass-pound", "power-watt", "speed-kilometer-per-hour",
    "speed-mile-per-hour", "volume-gallon", "volume-liter",
)  # fmt: skip
TEMPERATURES = ("temperature-celsius", "temperature-fahrenheit")
DURATIONS: tuple[RelativeUnit, ...] = ("year", "month", "week", "day", "hour", "minute", "second")


def _day(random: Random) -> date:
    return FIRST_DAY + timedelta(days=random.randrange(NUM_DAYS))


def _moment(random: Random) -> time:
    """Draw a quarter hour, more often just after noon and midnight, where 12- and 24-hour clocks disagree."""
    hour = random.choice((0, 12)) if random.random() < 0.12 else random.randrange(24)
    return time(hour, random.randrange(0, 60, 15))


def _whole(random: Random, max_digits: int) -> int:
    """Draw a whole number; every number of digits is equally likely."""
    num_digits = random.randint(1, max_digits)
    return random.randrange(10 ** (num_digits - 1), 10**num_digits)


def _quantity(random: Random, max_digits: int) -> int:
    """Draw a whole number, which is round from 100 up; 1, where grammar changes, comes more often."""
    if random.random() < 0.08:
        return 1
    number = _whole(random, max_digits)
    scale: int = 10 ** max(len(str(number)) - 2, 0)
    return number - number % scale


def _with_decimal(random: Random, number: int) -> Decimal:
    """Give one number in four a decimal, but never zero: 5.0 would be written like 5."""
    return number + Decimal(random.randint(1, 9)) / 10 if random.random() < 0.25 else Decimal(number)


def _date(random: Random) -> Phrase:
    day, width = _day(random), random.choice(DATE_WIDTHS)
    return lambda book: book.day(day, width)


def _date_fields(random: Random) -> Phrase:
    day = _day(random)
    skeleton = random.choice(SKELETONS if day.month == MAY else SKELETONS + ABBREVIATED_SKELETONS)
    return lambda book: book.day_fields(day, skeleton)


def _time(random: Random) -> Phrase:
    moment = _moment(random)
    return lambda book: _time_of_day(book, moment)


def _time_with_seconds(random: Random) -> Phrase:
    moment = _moment(random).replace(second=random.randrange(60))
    return lambda book: book.time_of_day(moment, "medium")


def _date_and_time(random: Random) -> Phrase:
    day, moment, width = _day(random), _moment(random), random.choice(DATE_WIDTHS)
    return lambda book: book.day_and_time(day, moment, width)


def _relative_time(random: Random) -> Phrase:
    count, direction, unit = _quantity(random, 3), random.choice((-1, 1)), random.choice(DURATIONS)
    return lambda book: book.relative(direction * count, unit)


def _duration(random: Random) -> Phrase:
    """Draw one or two neighbouring units of time: "5 minutes", "2 hours and 5 minutes"."""
    first = random.randrange(len(DURATIONS))
    units = DURATIONS[first : first + random.randint(1, 2)]
    parts = [(Decimal(_quantity(random, 2)), f"duration-{unit}") for unit in units]
    return lambda book: book.listing([book.measure(value, unit, "long") for value, unit in parts], "standard")


def _measure(random: Random) -> Phrase:
    value = _with_decimal(random, _quantity(random, 3))
    unit, width = random.choice(UNITS), random.choice(UNIT_WIDTHS)
    return lambda book: book.measure(value, unit, width)


def _temperature(random: Random) -> Phrase:
    value, unit = Decimal(random.randint(-40, 120)), random.choice(TEMPERATURES)
    width = random.choice(UNIT_WIDTHS)
    return lambda book: book.measure(value, unit, width)


def _price(random: Random) -> Phrase:
    if random.random() < 0.2:
        amount, currency = Decimal(_whole(random, 5)), random.choice(CURRENCIES_WITHOUT_CENTS)
    else:
        amount = Decimal(100 * _whole(random, 4) + random.randrange(100)) / 100
        currency = random.choice(CURRENCIES_WITH_CENTS)
    return lambda book: book.price(amount, currency)


def _money(random: Random) -> Phrase:
    amount, currency = _quantity(random, 4), random.choice(NAMED_CURRENCIES)
    return lambda book: book.money(amount, currency)


def _number(random: Random) -> Phrase:
    value = _with_decimal(random, _whole(random, 6))
    return lambda book: book.number(value)


def _percent(random: Random) -> Phrase:
    value = _with_decimal(random, _whole(random, 3))
    return lambda book: book.percent(value)


def _two_of(draw: Draw) -> Draw:
    """Make lists of two from a kind of phrase."""

    def draw_two(random: Random) -> Phrase:
        first, second, style = draw(random), draw(random), random.choice(LIST_STYLES)
        return lambda book: book.listing([first(book), second(book)], style)

    return draw_two


def _some_of(write: Callable[[Phrasebook, Item], str], items: Sequence[Item], at_most: int) -> Draw:
    """Make lists of different items from a given set, each equally likely in every place."""

    def draw_some(random: Random) -> Phrase:
        chosen, style = random.sample(items, random.randint(2, at_most)), random.choice(LIST_STYLES)
        return lambda book: book.listing([write(book, item) for item in chosen], style)

    return draw_some


def _day_of_year(book: Phrasebook, day: date) -> str:
    return book.day_fields(day, "MMMMd")


def _time_of_day(book: Phrasebook, moment: time) -> str:
    return book.time_of_day(moment, "short")


# How often each kind is drawn, in percent. Repetitions are dropped, so the few kinds with little variety (months,
# weekdays) give way to the others in a large corpus.
KINDS: dict[str, tuple[int, Draw]] = {
    "date": (12, _date),
    "date fields": (12, _date_fields),
    "time": (1, _time),
    "time with seconds": (3, _time_with_seconds),
    "date and time": (8, _date_and_time),
    "relative time": (5, _relative_time),
    "duration": (5, _duration),
    "measure": (8, _measure),
    "temperature": (2, _temperature),
    "price": (6, _price),
    "money": (5, _money),
    "number": (2, _number),
    "percent": (2, _percent),
    "countries": (10, _some_of(Phrasebook.country, COUNTRIES, 4)),
    "languages": (7, _some_of(Phrasebook.language, LANGUAGES, 4)),
    "months": (1, _some_of(Phrasebook.month, range(1, 13), 4)),
    "weekdays": (1, _some_of(Phrasebook.weekday, range(7), 4)),
    "two days": (2, _some_of(_day_of_year, DAYS_OF_LEAP_YEAR, 2)),
    "two times": (2, _some_of(_time_of_day, QUARTERS_OF_HOURS, 2)),
    "two measures": (4, _two_of(_measure)),
    "two sums of money": (2, _two_of(_money)),
}
