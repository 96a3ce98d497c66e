import os
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import pytest
from babel.dates import format_date, format_timedelta
from babel.numbers import format_currency
from babel.units import format_unit

from heedful.errors import UserError
from heedful.tasks.translation import demo_kinds
from heedful.tasks.translation.demo_corpus import available_languages, generate_pairs
from heedful.tasks.translation.demo_phrases import Phrasebook, tidy

NUM_PAIRS = 15_000


@pytest.fixture(scope="module")
def german_pairs() -> dict[int, list[tuple[str, str]]]:
    return {seed: generate_pairs("de", NUM_PAIRS, seed) for seed in (1, 2)}


def test_gives_as_many_pairs_as_asked_for_each_source_once(german_pairs):
    for pairs in german_pairs.values():
        assert len({source for source, _ in pairs}) == len(pairs) == NUM_PAIRS
    assert generate_pairs("de", 0, seed=1) == []


def test_pairs_depend_on_the_seed_only(german_pairs):
    assert generate_pairs("de", 500, seed=1) == german_pairs[1][:500]
    assert german_pairs[1] != german_pairs[2]


def test_pairs_are_the_same_in_another_process_with_other_settings(german_pairs):
    program = (
        "from heedful.tasks.translation.demo_corpus import generate_pairs; print(ascii(generate_pairs('de', 500, 1)))"
    )
    for changes in (
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "fr_FR.UTF-8"},
        {"PYTHONHASHSEED": "2", "TZ": "America/New_York", "LC_ALL": "C"},
    ):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | changes
        output = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)
        assert output.strip() == ascii(german_pairs[1][:500])


def test_every_target_language_gets_the_same_sources(german_pairs):
    for language in ("fr", "ja"):
        sources = [source for source, _ in generate_pairs(language, 300, seed=1)]
        assert sources == [source for source, _ in german_pairs[1][:300]]


def test_a_source_has_one_translation_over_several_corpora(german_pairs):
    translations = defaultdict(set)
    for source, translation in german_pairs[1] + german_pairs[2]:
        translations[source].add(translation)
    assert len(translations) < 2 * NUM_PAIRS, "the two corpora share no source, so nothing was compared"
    assert not {source: found for source, found in translations.items() if len(found) > 1}


def test_only_months_without_abbreviation_give_two_sources_one_translation(german_pairs):
    sources = defaultdict(set)
    for source, translation in german_pairs[1] + german_pairs[2]:
        sources[translation].add(source)
    shared = [translation for translation, found in sources.items() if len(found) > 1]
    assert shared
    assert all({"März", "Juni", "Juli"} & set(translation.split()) for translation in shared)


def english_atoms() -> Iterator[tuple[str, Any]]:
    """Write in English all that can be drawn except lists, numbers standing for all numbers of their form."""
    book = Phrasebook("en")
    for day in (date(2023, 12, 1) + timedelta(days=number) for number in range(400)):
        for width in demo_kinds.DATE_WIDTHS:
            yield book.day(day, width), (width, day)
            for moment in (time(0, 15), time(12, 15), time(13, 0)):
                yield book.day_and_time(day, moment, width), (width, day, moment)
        skeletons = demo_kinds.SKELETONS + (() if day.month == 5 else demo_kinds.ABBREVIATED_SKELETONS)
        for skeleton in skeletons:
            # A phrase without a year is written alike in several: what it says is the value here.
            yield book.day_fields(day, skeleton), (skeleton, _fields(day, skeleton))
    for moment in demo_kinds.QUARTERS_OF_HOURS:
        yield book.time_of_day(moment, "short"), (moment, "short")
        yield book.time_of_day(moment, "medium"), (moment, "medium")
    numbers = [Decimal(text) for text in ("1", "2", "5", "12", "1.5", "100", "990.9", "-1", "0", "1234")]
    for number in numbers:
        yield book.number(number), number
        yield book.percent(number), (number, "percent")
        for unit in demo_kinds.UNITS + demo_kinds.TEMPERATURES:
            for width in demo_kinds.UNIT_WIDTHS:
                yield book.measure(number, unit, width), (number, unit, width)
        for currency in demo_kinds.CURRENCIES_WITH_CENTS + demo_kinds.CURRENCIES_WITHOUT_CENTS:
            if number == int(number):
                yield book.price(number, currency), (number, currency, "price")
        for currency in demo_kinds.NAMED_CURRENCIES:
            if number == int(number):
                yield book.money(int(number), currency), (number, currency, "money")
    for count in (1, 2, 100):
        for unit in demo_kinds.DURATIONS:
            yield book.measure(Decimal(count), f"duration-{unit}", "long"), (count, unit)
            yield book.relative(count, unit), (count, unit, "to come")
            yield book.relative(-count, unit), (count, unit, "past")
    yield from ((book.country(code), code) for code in demo_kinds.COUNTRIES)
    yield from ((book.language(code), code) for code in demo_kinds.LANGUAGES)
    yield from ((book.month(number), ("month", number)) for number in range(1, 13))
    yield from ((book.weekday(number), ("weekday", number)) for number in range(7))


def _fields(day: date, skeleton: str) -> tuple[Any, ...]:
    quarter = (day.month - 1) // 3
    values = {"y": day.year, "M": day.month, "E": day.weekday(), "d": day.day, "Q": quarter}
    return tuple(values[letter] for letter in sorted(set(skeleton)))


def test_english_writes_no_two_values_alike():
    values: dict[str, Any] = {}
    for text, value in english_atoms():
        assert values.setdefault(tidy(text), value) == value, f"{text!r} is {values[tidy(text)]} and {value}"
    assert len(values) > 5000


def test_items_of_lists_cannot_be_taken_for_lists():
    book = Phrasebook("en")
    items = [
        *map(book.country, demo_kinds.COUNTRIES),
        *map(book.language, demo_kinds.LANGUAGES),
        *(book.day_fields(day, "MMMMd") for day in demo_kinds.DAYS_OF_LEAP_YEAR),
        *(book.time_of_day(moment, "short") for moment in demo_kinds.QUARTERS_OF_HOURS),
        *(book.money(number, code) for number in (1, 2000) for code in demo_kinds.NAMED_CURRENCIES),
        *(
            book.measure(Decimal("1234.5"), unit, width)
            for unit in demo_kinds.UNITS
            for width in demo_kinds.UNIT_WIDTHS
        ),
    ]
    assert not [item for item in items if ", " in item or {"and", "or"} & set(tidy(item).split())]


def test_no_odd_spaces_or_marks(german_pairs):
    samples = [german_pairs[1], *(generate_pairs(language, 300, 1) for language in ("fr", "ja", "ar", "he"))]
    for source, translation in (pair for pairs in samples for pair in pairs):
        for text in (source, translation):
            assert text == text.strip() == unicodedata.normalize("NFC", text) != ""
            assert not [character for character in text if character != " " and character.isspace()]
            assert not {"\u200e", "\u200f", "\u061c"} & set(text)
    assert tidy(" 1\u202f234,50\u00a0€\u200f\n") == "1 234,50 €"


def test_phrases_are_short(german_pairs):
    assert max(len(text) for pair in german_pairs[1] for text in pair) < 80


def test_every_name_stands_often_in_every_place_of_a_list(german_pairs):
    book = Phrasebook("en")
    names = [*map(book.country, demo_kinds.COUNTRIES), *map(book.language, demo_kinds.LANGUAGES)]
    first, last = Counter[str](), Counter[str]()
    for source, _ in german_pairs[1]:
        items = source.replace(", and ", ", ").replace(", or ", ", ").replace(" and ", ", ").replace(" or ", ", ")
        first[items.split(", ")[0]] += 1
        last[items.split(", ")[-1]] += 1
    assert min(first[name] for name in names) >= 8
    assert min(last[name] for name in names) >= 8


@pytest.mark.parametrize(
    ("language", "phrases"),
    [
        (
            "de",
            [
                "Freitag, 5. März 2021", "Fr., 5. März 2021", "3. Quartal 1998", "5. März 2021, 00:45",
                "vor 1 Monat", "in 14 Monaten", "1 Meile", "1,5 Meilen", "1 mi", "1.234,50 €",
                "1 Kanadischer Dollar", "2.500 Kanadische Dollar", "12,5 %", "Österreich, Polen oder Ägypten",
            ],
        ),
        (
            "fr",
            [
                "vendredi 5 mars 2021", "ven. 5 mars 2021", "3e trimestre 1998", "5 mars 2021, 00:45",
                "il y a 1 mois", "dans 14 mois", "1 mile", "1,5 mile", "1 mi", "1 234,50 €",
                "1 dollar canadien", "2 500 dollars canadiens", "12,5 %", "Autriche, Pologne ou Égypte",
            ],
        ),
        (
            "en",
            [
                "Friday, March 5, 2021", "Fri, Mar 5, 2021", "3rd quarter 1998", "March 5, 2021, 12:45 AM",
                "1 month ago", "in 14 months", "1 mile", "1.5 miles", "1 mi", "€1,234.50",
                "1 Canadian dollar", "2,500 Canadian dollars", "12.5%", "Austria, Poland, or Egypt",
            ],
        ),
    ],
)  # fmt: skip
def test_phrases_are_right(language, phrases):
    book, day = Phrasebook(language), date(2021, 3, 5)
    written = [
        book.day(day, "full"),
        book.day_fields(day, "yMMMEd"),
        book.day_fields(date(1998, 9, 1), "yQQQQ"),
        book.day_and_time(day, time(0, 45), "long"),
        book.relative(-1, "month"),
        book.relative(14, "month"),
        book.measure(Decimal(1), "length-mile", "long"),
        book.measure(Decimal("1.5"), "length-mile", "long"),
        book.measure(Decimal(1), "length-mile", "short"),
        book.price(Decimal("1234.50"), "EUR"),
        book.money(1, "CAD"),
        book.money(2500, "CAD"),
        book.percent(Decimal("12.5")),
        book.listing([book.country(code) for code in ("AT", "PL", "EG")], "or"),
    ]
    assert [tidy(text) for text in written] == phrases


@pytest.mark.parametrize("language", ["de", "fr", "es", "ja"])
def test_phrases_are_those_of_babel(language):
    book, day = Phrasebook(language), date(2031, 5, 17)
    assert book.day(day, "long") == format_date(day, "long", locale=language)
    assert book.price(Decimal(7), "USD") == format_currency(7, "USD", locale=language)
    assert book.relative(-3, "week") == format_timedelta(timedelta(weeks=-3), add_direction=True, locale=language)
    for value in (2, 1.5):
        expected = format_unit(value, "mass-kilogram", locale=language)
        assert book.measure(Decimal(str(value)), "mass-kilogram", "long") == expected


def test_units_inherit_what_their_language_leaves_out():
    # Polish abbreviations have one form for all plurals, Japanese days no long form.
    polish, japanese = Phrasebook("pl"), Phrasebook("ja")
    assert [tidy(polish.measure(Decimal(n), "mass-kilogram", "short")) for n in (1, 3)] == ["1 kg", "3 kg"]
    assert japanese.measure(Decimal(3), "duration-day", "long") == "3 日"


def test_all_languages_have_all_phrases():
    english = Phrasebook("en")
    assert {"de", "es", "fr", "it", "ja", "nl", "pl", "pt", "zh"} <= set(available_languages())
    for language in available_languages():
        book = Phrasebook(language)
        translated = [book.country(code) != english.country(code) for code in demo_kinds.COUNTRIES]
        assert sum(translated) > len(translated) / 4
        assert book.month(5) != english.month(5)
        assert not {"+1", "-1"} & {book.relative(count, "year")[:2] for count in (1, -1)}
        for source, translation in generate_pairs(language, 100, seed=3):
            assert translation
            assert not any(unit in translation for unit in demo_kinds.UNITS), (source, translation)


def test_languages_leave_each_other_alone():
    # Hebrew and Italian both inherit their months standing alone from the root of all languages.
    assert Phrasebook("he").month(1) == "ינואר"
    assert Phrasebook("it").month(1) == "gennaio"


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("deu", "de (German)"), ("german", "de (German)"), ("pt-BR", "pt (Portuguese)"), ("DE", "de (German)")],
)
def test_unknown_language_names_the_nearest(wrong, near):
    with pytest.raises(UserError, match="did you mean") as caught:
        generate_pairs(wrong, 10, seed=1)
    assert near in str(caught.value)
    assert wrong in str(caught.value)


def test_language_that_is_near_to_none():
    with pytest.raises(UserError, match=r'no target language "xqj".*languages: af, ar, .* zh$'):
        generate_pairs("xqj", 10, seed=1)


def test_english_is_refused_as_target():
    with pytest.raises(UserError, match="from English"):
        generate_pairs("en", 10, seed=1)


def test_missing_babel_says_what_to_install(monkeypatch):
    for name in ("babel", "babel.dates", "babel.lists", "babel.numbers"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("heedful.tasks.translation.demo_kinds", "heedful.tasks.translation.demo_phrases"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(UserError, match=r'pip install "heedful\[demo\]"'):
        generate_pairs("de", 10, seed=1)
