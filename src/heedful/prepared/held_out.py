"""What is held out for validation if no files are given for it; content decides, so equal examples go together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.text.documents import TextPart

# The share of pairs that is held out, and of anything else; of pairs and labelled texts, no more than this number.
PAIRS_SHARE, SHARE = 0.02, 0.05
MAX_HELD_OUT = 2000
# A larger share of few images is held out, so that its figures mean something.
FEWEST_IMAGES, LARGEST_SHARE_OF_IMAGES = 200, 0.2
# From this many documents on, whole ones are held out.
MANY_DOCUMENTS = 100

Keys = npt.NDArray[np.uint64]
# From the parts of all documents to the same parts, each with whether it is held out.
HoldOut = Callable[[Iterable[TextPart]], Iterator[tuple[TextPart, bool]]]


def content_digest(content: bytes) -> bytes:
    """Eight bytes that identify some content, the same on every machine."""
    return blake2b(content, digest_size=8).digest()


def content_keys(contents: Iterable[bytes]) -> Keys:
    """The digests of some contents as numbers."""
    return np.frombuffer(b"".join(map(content_digest, contents)), dtype="<u8")


def held_out_keys(keys: Keys, share: float) -> Keys:
    """The keys of the sources to hold out, given those of all distinct examples: the smallest, until there are enough.

    All examples of a source go together, so that none of its translations is seen in training. A source with so many
    translations that it would fill more than a quarter of the held-out part is skipped as long as others suffice.
    """
    sources, counts = np.unique(keys, return_counts=True)
    if len(sources) < 2:
        raise UserError(
            "the training files hold a single distinct source line, so none can be held out for "
            "validation: give more lines, or validation files"
        )
    wanted = min(MAX_HELD_OUT, max(1, round(share * len(keys))))
    most = max(1, wanted // 4)
    while counts[counts <= most].sum() < wanted and most < len(keys) // 2:
        most *= 2
    usual = counts <= most
    number = int(np.searchsorted(np.cumsum(counts[usual]), wanted)) + 1
    chosen: Keys = sources[usual][: min(number, len(sources) - 1)]
    return chosen


def held_out_images(digests: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Which images are held out: those with the lowest digests, so equal images are on the same side."""
    share = min(LARGEST_SHARE_OF_IMAGES, max(SHARE, FEWEST_IMAGES / max(1, len(digests))))
    ordered = sorted(set(digests))
    chosen = set(ordered[: round(share * len(ordered))])
    return np.array([each in chosen for each in digests], bool)


def held_out_text(characters: int, documents: int) -> tuple[HoldOut, str]:
    """How to hold out whole documents if there are many, else the end of the text; and that in words."""
    if documents >= MANY_DOCUMENTS:
        return _documents_by_digest, "documents by their hash"
    border = characters - max(1, round(SHARE * characters))
    return lambda parts: _end_of_text(parts, border), "the end of the text"


def no_text(parts: Iterable[TextPart]) -> Iterator[tuple[TextPart, bool]]:
    """Hold out nothing."""
    return ((part, False) for part in parts)


def _documents_by_digest(parts: Iterable[TextPart]) -> Iterator[tuple[TextPart, bool]]:
    """Whole documents are held out or not, by the digest of their beginning, so equal ones stay together."""
    begins, held_out = True, False
    for part in parts:
        if begins:
            digest = content_digest(part.text.encode("utf-8", "replace"))
            held_out = int.from_bytes(digest, "big") < SHARE * 2**64
        begins = part.ends
        yield part, held_out


def _end_of_text(parts: Iterable[TextPart], border: int) -> Iterator[tuple[TextPart, bool]]:
    """What comes after this many characters; the border moves back to the start of its line, if its part has one."""
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
