"""A parallel corpus that needs no download: English and another language, generated from CLDR by babel."""

import difflib
import re
from random import Random

from heedful.errors import UserError

# Languages for which CLDR has everything that the demo draws, with their English names.
_TARGETS = {
    "af": "Afrikaans", "ar": "Arabic", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bangla", "ca": "Catalan",
    "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish",
    "gl": "Galician", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian",
    "kk": "Kazakh", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian",
    "nb": "Norwegian", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili",
    "ta": "Tamil", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip


def available_languages() -> list[str]:
    """Give the codes of the languages that the demo can translate English to."""
    return sorted(_TARGETS)


def generate_pairs(target_language: str, count: int, seed: int) -> list[tuple[str, str]]:
    """Give `count` pairs of an English text and its translation, each source once and with one translation.

    The pairs depend only on the arguments, and every target language gets the same English texts.
    Texts are in NFC, on one line; CLDR's odd spaces (no-break U+00A0, narrow no-break U+202F ...) become
    plain ones, and marks of writing direction are left out.
    """
    check_language(target_language)
    try:
        from heedful.tasks.translation.demo_kinds import KINDS
        from heedful.tasks.translation.demo_phrases import Phrasebook, tidy
    except ModuleNotFoundError as error:
        raise UserError('the demo corpus needs the package babel: pip install "heedful[demo]"') from error
    english, target = Phrasebook("en"), Phrasebook(target_language)
    draws = [draw for _, draw in KINDS.values()]
    weights = [weight for weight, _ in KINDS.values()]
    random = Random(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        (draw,) = random.choices(draws, weights)
        phrase = draw(random)
        source, translation = tidy(phrase(english)), tidy(phrase(target))
        first_translation = pairs.setdefault(source, translation)
        assert first_translation == translation, f"{source!r}: {first_translation!r} and {translation!r}"
    return list(pairs.items())


def check_language(code: str) -> None:
    """Raise a UserError for a language that the demo cannot translate to."""
    if code in _TARGETS:
        return
    offer = f"languages: {', '.join(available_languages())}"
    if code == "en":
        raise UserError(f"the demo translates from English, so English cannot be the target; {offer}")
    near = " or ".join(f"{match} ({_TARGETS[match]})" for match in _near_languages(code))
    question = f"; did you mean {near}?" if near else ";"
    raise UserError(f'the demo has no target language "{code}"{question} {offer}')


def _near_languages(text: str) -> list[str]:
    """Find the languages whose code or English name is close to the text."""
    wanted = text.strip().lower()
    base = re.split("[-_]", wanted)[0]
    if base in _TARGETS:
        return [base]
    by_name = {name.lower(): code for code, name in _TARGETS.items()}
    names = difflib.get_close_matches(wanted, by_name, n=2, cutoff=0.7)
    if names:
        return [by_name[name] for name in names]
    return difflib.get_close_matches(base, _TARGETS, n=3, cutoff=0.5)
