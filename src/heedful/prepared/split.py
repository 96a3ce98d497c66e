"""Which pairs are trained on, held out or repeated, decided by content alone, and the tokenizer's sample."""

from collections.abc import Iterator
from enum import IntEnum
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError

MAX_HELD_OUT = 2000
HELD_OUT_SHARE = 0.02

# More text than this adds time but hardly any knowledge about which subwords are frequent.
MAX_SAMPLE_BYTES = 24_000_000
# Training subwords takes about 150 bytes of memory for each byte of distinct words (measured with spaced
# and with unspaced scripts), so that this and not the size of the text bounds the memory.
MAX_SAMPLE_WORD_BYTES = 2_500_000

Keys = npt.NDArray[np.uint64]

KEY_DTYPE = np.dtype([("pair", "<u8"), ("source", "<u8"), ("characters", "<u4")])
_ODD = np.uint64(0x9E3779B97F4A7C15)


class Fate(IntEnum):
    """What becomes of a clean pair."""

    TRAIN = 0
    HELD_OUT = 1
    DUPLICATE = 2


def content_keys(texts: list[bytes]) -> Keys:
    """A 64-bit hash of each text, the same on every machine."""
    return np.frombuffer(b"".join(blake2b(text, digest_size=8).digest() for text in texts), dtype="<u8")


def pair_keys(source_keys: Keys, target_keys: Keys) -> Keys:
    """A 64-bit hash of each pair; multiplying keeps a pair apart from the one with its sides exchanged."""
    return source_keys * _ODD + target_keys


def find_duplicates(keys: Keys) -> npt.NDArray[np.bool_]:
    """Which keys occurred before; memory stays at about two numbers a key when few are repeated."""
    ordered = np.sort(keys)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    duplicates = np.zeros(len(keys), dtype=np.bool_)
    if len(repeated):
        nearest = np.minimum(np.searchsorted(repeated, keys), len(repeated) - 1)
        candidates = np.flatnonzero(repeated[nearest] == keys)
        _, first = np.unique(keys[candidates], return_index=True)
        duplicates[candidates] = True
        duplicates[candidates[first]] = False
    return duplicates


def held_out_sources(source_keys: Keys, share: float = HELD_OUT_SHARE) -> Keys:
    """The keys of the sources to hold out, given those of all distinct pairs: the smallest, until enough.

    All pairs of a source go together, so that none of its translations is seen in training. A source with
    so many translations that it would fill a quarter of the held-out part is passed over while others do.
    """
    sources, counts = np.unique(source_keys, return_counts=True)
    if len(sources) < 2:
        raise UserError(
            "The training files hold a single distinct source line, so that none can be held out for "
            "validation: give more lines, or validation files."
        )
    wanted = min(MAX_HELD_OUT, max(1, round(share * len(source_keys))))
    most = max(1, wanted // 4)
    while counts[counts <= most].sum() < wanted and most < len(source_keys) // 2:
        most *= 2
    usual = counts <= most
    number = int(np.searchsorted(np.cumsum(counts[usual]), wanted)) + 1
    chosen: Keys = sources[usual][: min(number, len(sources) - 1)]
    return chosen


def decide_fates(keys: npt.NDArray[np.void], hold_out: bool) -> tuple[npt.NDArray[np.uint8], Keys]:
    """The fate of each clean pair from its keys (an array of KEY_DTYPE), and the keys of held-out sources."""
    duplicates = find_duplicates(keys["pair"])
    fates = np.where(duplicates, Fate.DUPLICATE, Fate.TRAIN).astype(np.uint8)
    if not hold_out:
        return fates, np.empty(0, np.uint64)
    held_out = held_out_sources(keys["source"][~duplicates])
    nearest = np.minimum(np.searchsorted(held_out, keys["source"]), len(held_out) - 1)
    fates[(held_out[nearest] == keys["source"]) & ~duplicates] = Fate.HELD_OUT
    return fates, held_out


def read_keys(path: Path) -> npt.NDArray[np.void]:
    """The keys that were written one after the other into a file, without loading them all."""
    if path.stat().st_size == 0:
        return np.empty(0, KEY_DTYPE)
    return np.memmap(path, dtype=KEY_DTYPE, mode="r")


class TokenizerSample:
    """A bounded sample of distinct pairs, chosen by content: the same from the same pairs in any order."""

    def __init__(self, max_bytes: int = MAX_SAMPLE_BYTES, max_word_bytes: int = MAX_SAMPLE_WORD_BYTES) -> None:
        self._max_bytes = max_bytes
        self._max_word_bytes = max_word_bytes
        self._largest_key = np.uint64(2**64 - 1)
        self._pairs: dict[int, tuple[int, bytes, bytes]] = {}  # pair key -> source key, source, target
        self._bytes = 0

    def add(self, keys: npt.NDArray[np.void], sources: list[bytes], targets: list[bytes]) -> None:
        """Take the pairs with small keys; when there are too many, halve the largest key that is taken."""
        for place in np.flatnonzero(keys["pair"] <= self._largest_key).tolist():
            key = int(keys["pair"][place])
            if key not in self._pairs:
                self._pairs[key] = int(keys["source"][place]), sources[place], targets[place]
                self._bytes += len(sources[place]) + len(targets[place])
        while self._bytes > self._max_bytes:
            self._largest_key >>= np.uint64(1)
            self._pairs = {key: pair for key, pair in self._pairs.items() if key <= self._largest_key}
            self._bytes = sum(len(source) + len(target) for _, source, target in self._pairs.values())

    def texts(self, without_sources: Keys) -> Iterator[str]:
        """The sampled lines, those of the given sources left out, until they hold too many distinct words."""
        excluded = set(without_sources.tolist())
        words: set[bytes] = set()
        word_bytes = 0
        for key in sorted(self._pairs):
            source_key, *texts = self._pairs[key]
            if source_key in excluded:
                continue
            for text in texts:
                new = set(text.split()) - words
                words |= new
                word_bytes += sum(map(len, new))
                yield text.decode("utf-8")
            if word_bytes > self._max_word_bytes:
                return
