"""The lines that a joint vocabulary is learned from, chosen by content alone."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from heedful.prepared.held_out import Keys

# More text than this takes more time but tells hardly anything more about which subwords are frequent.
MAX_SAMPLE_BYTES = 24_000_000
# Training subwords takes about 150 bytes of memory for each byte of distinct words (measured with spaced and
# unspaced scripts), so this bounds the memory, not the size of the text.
MAX_SAMPLE_WORD_BYTES = 2_500_000


class TokenizerSample:
    """A bounded sample of distinct pairs, chosen by content: the same pairs give the same sample in any order."""

    def __init__(self, max_bytes: int = MAX_SAMPLE_BYTES, max_word_bytes: int = MAX_SAMPLE_WORD_BYTES) -> None:
        self._max_bytes = max_bytes
        self._max_word_bytes = max_word_bytes
        self._largest_key = np.uint64(2**64 - 1)
        self._pairs: dict[int, tuple[int, bytes, bytes]] = {}  # pair key -> (source key, source, target)
        self._bytes = 0

    def add(self, keys: npt.NDArray[np.void], sources: list[bytes], targets: list[bytes]) -> None:
        """Take the pairs with small keys; when there are too many, halve the largest key allowed."""
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
        """The sampled lines, without those of the given sources, until they hold too many distinct words."""
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
