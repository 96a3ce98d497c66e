"""Where the sentences of a text begin and end."""

from __future__ import annotations

import re

Span = tuple[int, int]

# Half a surrogate pair is not a character: the library would refuse the text.
_HALF_PAIR = re.compile("[\ud800-\udfff]")
# A number that may begin a sentence. In some languages the splitter takes any full stop before a number for that of an
# abbreviation ("Nr. 3"). After a word of four letters or more it gets a word in place of the number, and knows better.
_NUMBER = re.compile(r"(?:(?:(?<=[^\W\d_]{4}\.)|(?<=[!?]))(?=\s)|(?<=[。！？]))(\s*)(\d+)(?=\s*[^\W\d_])")
# Common words, of English and German, that the splitter takes for abbreviations (of Maine, number, Michigan ...).
_COMMON_WORD = re.compile(r"(?<![^\W\d_])(?i:me|no|ok|ill|art|may|miss|fed|id|mich|mag|bart)(?=\.\s+[^\W\da-zß-ÿ_])")
_ANOTHER_WORD = "usually"
# The full stop after a single capital is mostly that of a name or a title ("M. Dupont").
_INITIAL = re.compile(r"(?:^|\s)[^\W\d_a-z]\.$")
# The number of an item in a list belongs to what follows it.
_ITEM = re.compile(r"^[(\[]?(?:\d{1,3}|[ivxIVX]{1,4}|[a-zA-Z])[.)\]]+$")
_WORD_CHARACTER = re.compile(r"[^\W_]")
# The splitter cuts right after a full stop; closing signs, tags, bold type and pictures there belong to the sentence.
_LEADING_CLOSER = re.compile(
    r"(?:[)\]}”’»›]+|\*{2,}|_{2,}|(?:</[A-Za-z]+>)+|[\u2600-\u27bf\U0001f000-\U0001faff\ufe0f\u200d]+)(?=\s|$)"
)
# Text is looked at in stretches of this many characters: some patterns take quadratic time.
_STRETCH = 4000
# Ends that the splitter misses: an ellipsis or several signs, or brackets, quotes, stars or tags after them.
_CLOSING = r"(?:[)\]}\"'”’»›*_]|</[A-Za-z]+>)"
_OPENING = r"(?:[(\[{\"'“„‘«‹*_]|<[A-Za-z]+>)*"
_CLEAR_END = re.compile(rf"(?:(?:…|[.!?]{{2,}}){_CLOSING}*|[.!?]{_CLOSING}+)\s+(?={_OPENING}[^\W_a-z])")
_END = re.compile(rf"[.!?…。！？։।]{_CLOSING}*$")
# What may end a part of a sentence that is too long.
_LOOSE_END = re.compile(rf"(?:[.!?…;:。！？；：]{_CLOSING}*|[,、，]|\)|\s[-–—])\s+|(?<=[。！？；，、])")


def sentence_spans(text: str, language: str | None = None) -> list[Span]:
    """The beginning and end of each sentence, without the white space around it; the language is a code such as `en`.

    Abbreviations, quotations, numbers and the full stops of all scripts are those that the library sentencex knows.
    """
    spans: list[Span] = []
    start = 0
    goes_on = False  # whether the last sentence does so beyond the stretch in which it began
    while start < len(text):
        end = min(start + _STRETCH, len(text))
        if end < len(text):  # no word is cut in two
            end = max(text.rfind(" ", start, end), start) if " " in text[start + 1 : end] else end
        found = _spans_of(text[start:end], language)
        # The last sentence of a stretch may go on after it.
        complete = found if end == len(text) or len(found) < 2 else found[:-1]
        new = [(start + first, start + last) for first, last in complete]
        if goes_on and new:
            new[0] = (spans.pop()[0], new[0][1])
        # Its end is looked for where it may be: a sentence may be as long as the text.
        goes_on = bool(new) and len(found) < 2 and not _END.search(text, max(start, new[-1][0]), new[-1][1])
        spans += new
        start = spans[-1][1] if complete and end < len(text) else end
    return spans


def _spans_of(text: str, language: str | None) -> list[Span]:
    import sentencex

    asked = _HALF_PAIR.sub("\ufffd", text)
    asked = _NUMBER.sub(lambda match: match[1] + "X" * len(match[2]), asked)
    asked = _COMMON_WORD.sub(lambda match: _ANOTHER_WORD[: len(match[0])], asked)
    parts: list[str] = sentencex.segment((language or "en").partition("-")[0].lower(), asked)
    if "".join(parts) != asked:  # never seen; but no character may be lost
        parts = [asked]
    spans: list[Span] = []
    start = 0
    for part in parts:
        spans += _cut(text, (start, start + len(part)), _CLEAR_END)
        start += len(part)
    return _joined(text, spans)


def loose_spans(text: str, span: Span) -> list[Span]:
    """The parts of a long sentence, between signs that may well stand inside one."""
    return _cut(text, span, _LOOSE_END)


def _cut(text: str, span: Span, end: re.Pattern[str]) -> list[Span]:
    """The stretches between the ends inside a span, without the white space around them."""
    ends = [match.end() for match in end.finditer(text, *span)]
    cut = zip([span[0], *ends], [*ends, span[1]], strict=True)
    bare = [(start + len(text[start:stop]) - len(text[start:stop].lstrip()), stop) for start, stop in cut]
    bare = [(start, start + len(text[start:stop].rstrip())) for start, stop in bare]
    return [(start, stop) for start, stop in bare if stop > start]


def _joined(text: str, spans: list[Span]) -> list[Span]:
    """Spans joined with their neighbours where they are not sentences: names, numbers of items, signs alone."""
    joined: list[Span] = []
    for start, end in spans:
        closer = _LEADING_CLOSER.match(text, start, end) if joined else None
        if closer:
            joined[-1] = (joined[-1][0], closer.end())
            start = closer.end() + len(text[closer.end() : end]) - len(text[closer.end() : end].lstrip())
            if start == end:
                continue
        goes_on = joined and (_INITIAL.search(text, *joined[-1]) or _ITEM.match(text[slice(*joined[-1])]))
        if goes_on or (joined and not _WORD_CHARACTER.search(text, start, end)):
            start = joined.pop()[0]
        joined.append((start, end))
    return joined
