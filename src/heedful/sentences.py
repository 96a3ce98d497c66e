"""Where the sentences of a text begin and end."""

from __future__ import annotations

import re

# A number that may begin a sentence. In some languages the splitter takes any full stop before a number for that of an
# abbreviation ("Nr. 3"). After a word of four letters or more it reads a word in place of the number, and knows better.
_NUMBER = re.compile(r"(?:(?:(?<=[^\W\d_]{4}\.)|(?<=[!?]))(?=\s)|(?<=[。！？]))(\s*)(\d+)(?=\s*[^\W\d_])")
# The full stop after a single capital is mostly that of a name or a title ("M. Dupont").
_INITIAL = re.compile(r"(?:^|\s)[^\W\d_a-z]\.$")


def sentence_spans(text: str, language: str | None = None) -> list[tuple[int, int]]:
    """The beginning and end of each sentence, without the white space around it; the language is a code such as `en`.

    Abbreviations, quotations, numbers and the full stops of all scripts are those that the library sentencex knows.
    """
    import sentencex

    asked = _NUMBER.sub(lambda match: match[1] + "X" * len(match[2]), text)
    parts: list[str] = sentencex.segment((language or "en").partition("-")[0].lower(), asked)
    if "".join(parts) != asked:  # never seen; but no character may be lost
        parts = [asked]
    spans: list[tuple[int, int]] = []
    start = 0
    for part in parts:
        bare = part.strip()
        if bare:
            first = start + part.index(bare)
            if spans and _INITIAL.search(text, *spans[-1]):
                first = spans.pop()[0]
            spans.append((first, start + len(part.rstrip())))
        start += len(part)
    return spans
