"""Generated sentence pairs that are as varied as real ones, written fast enough for millions of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SEED = 20170612
VOCABULARY = 600_000
PAIRS_TOGETHER = 20_000
CONSONANTS = "b c d f g h j k l m n p r s sch st t v w z"
VOWELS = {"source": "a e i o u ea ou", "target": "a e i o u ä ö ü ei au"}


class Words(NamedTuple):
    """Words with a space after each, as bytes one after the other, and where each begins and how long it is."""

    letters: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, words: list[str]) -> Words:
        """The words of a language."""
        encoded = [f"{word} ".encode() for word in words]
        lengths = np.array([len(word) for word in encoded])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(lengths) - lengths, lengths)

    def lines(self, ranks: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> list[bytes]:
        """Lines of so many words each, given as the ranks of all words; each has a capital first and a dot last."""
        lengths = self.lengths[ranks]
        ends = np.cumsum(lengths)
        places = np.repeat(self.starts[ranks] - (ends - lengths), lengths) + np.arange(ends[-1])
        text = self.letters[places]
        last = ends[np.cumsum(counts) - 1] - 1  # the space after the last word of each line
        text[last] = ord("\n")
        text[np.append(0, last[:-1] + 1)] -= ord("a") - ord("A")
        return text.tobytes().replace(b"\n", b".\n").split(b"\n")[:-1]


def invent_words(side: str, rng: np.random.Generator) -> Words:
    """Distinct words of one to five syllables, the frequent ones short."""
    vowels = VOWELS[side].split()
    syllables = [c + v + end for c in CONSONANTS.split() for v in vowels for end in ("", "n", "r", "s")]
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        sizes = rng.integers(1, 6, 100_000).tolist()
        for size, places in zip(sizes, rng.integers(0, len(syllables), (100_000, 5)).tolist(), strict=True):
            words["".join([syllables[i] for i in places[:size]])] = None
    return Words.of(sorted(list(words)[:VOCABULARY], key=len))


def rank_distribution() -> npt.NDArray[np.float64]:
    """Cumulated frequencies of words by rank: 1/rank, and falling faster after the first ten thousand.

    With these two regimes of Zipf's law the number of distinct words grows as it does in real texts.
    """
    ranks = np.arange(VOCABULARY) + 2.7
    weights = np.where(ranks < 10_000, 1 / ranks, 10_000**0.8 / ranks**1.8)
    cumulated: npt.NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return cumulated


def sentence_pairs(num_pairs: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Blocks of varied pairs: one in a hundred repeats the one before it, one in a thousand breaks a cleaning rule."""
    rng = np.random.default_rng(SEED)
    source_words, target_words = (invent_words(side, rng) for side in ("source", "target"))
    distribution = rank_distribution()
    for start in range(0, num_pairs, PAIRS_TOGETHER):
        counts = np.clip(rng.lognormal(2.9, 0.5, min(PAIRS_TOGETHER, num_pairs - start)).astype(int), 1, 300)
        ranks = np.searchsorted(distribution, rng.random(counts.sum()))
        sources = source_words.lines(ranks, counts)
        targets = target_words.lines(ranks, counts)
        kinds = rng.random(len(counts))
        for place in np.flatnonzero(kinds < 0.01).tolist():
            sources[place], targets[place] = sources[place - 1], targets[place - 1]
        for place in np.flatnonzero(kinds > 0.999).tolist():
            sources[place], targets[place] = spoiled(sources[place], targets[place])
        yield sources, targets


def spoiled(source: bytes, target: bytes) -> tuple[bytes, bytes]:
    """The pair with a fault that one of the rules is for."""
    return [
        (source, b""),
        (source[:5] + b"\xff" + source[5:], target),
        (source, target[:7] + b"\x00\x07" + target[7:]),
        (source, target * 60),
    ][len(source) % 4]


def write_pairs(folder: Path, num_pairs: int) -> tuple[Path, Path]:
    """Write two aligned files and give their paths."""
    paths = folder / "train.xx", folder / "train.yy"
    with paths[0].open("wb") as source_file, paths[1].open("wb") as target_file:
        for sources, targets in sentence_pairs(num_pairs):
            source_file.write(b"\n".join(sources) + b"\n")
            target_file.write(b"\n".join(targets) + b"\n")
    return paths
