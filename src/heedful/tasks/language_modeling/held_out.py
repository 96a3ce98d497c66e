"""Which part of a text is held out, where no files are given for that."""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b

from heedful.text.documents import TextPart

HELD_OUT = 0.05
MANY_DOCUMENTS = 100

# From the parts of all documents to the same parts, each with whether it is held out.
Split = Callable[[Iterable[TextPart]], Iterator[tuple[TextPart, bool]]]


def choose_split(characters: int, documents: int) -> tuple[Split, str]:
    """Whole documents if there are many, else the end of the text; and this in words."""
    if documents >= MANY_DOCUMENTS:
        return documents_by_hash, "documents by their hash"
    border = characters - max(1, round(HELD_OUT * characters))
    return lambda parts: end_of_text(parts, border), "the end of the text"


def nothing(parts: Iterable[TextPart]) -> Iterator[tuple[TextPart, bool]]:
    """All is for training."""
    return ((part, False) for part in parts)


def documents_by_hash(parts: Iterable[TextPart]) -> Iterator[tuple[TextPart, bool]]:
    """A document goes one way as a whole, by a hash of its beginning, so that equal ones stay together."""
    begins, held_out = True, False
    for part in parts:
        if begins:
            digest = blake2b(part.text.encode("utf-8", "replace"), digest_size=8).digest()
            held_out = int.from_bytes(digest, "big") < HELD_OUT * 2**64
        begins = part.ends
        yield part, held_out


def end_of_text(parts: Iterable[TextPart], border: int) -> Iterator[tuple[TextPart, bool]]:
    """What comes after so many characters; the border moves back to the start of its line, if its part has one."""
    before = 0
    for part in parts:
        place = border - before
        before += len(part.text)
        if place <= 0 or place >= len(part.text):
            yield part, place <= 0
            continue
        place = part.text.rfind("\n", 0, place) + 1 or place
        yield TextPart(part.text[:place], True), False
        yield TextPart(part.text[place:], part.ends), True
