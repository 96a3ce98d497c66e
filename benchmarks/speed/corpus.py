"""The sentences that all systems get: Multi30k where it is there, otherwise random ids with the same lengths."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.text.special_tokens import END
from heedful.text.tokenizer import Tokenizer

VOCABULARY = 8000
ROOT = Path(__file__).parents[2]
MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
WORK = ROOT / "benchmarks" / "runs" / "speed"
# The logarithm of the number of subwords of a Multi30k sentence: mean and standard deviation.
LOG_LENGTH = (2.5, 0.35)


@dataclass(frozen=True)
class Corpus:
    """Pairs to train on and sentences to translate as ids, with references where there are any."""

    kind: str
    pairs: Path
    tokenizer: Tokenizer
    test: list[list[int]]
    references: list[str] | None


def load_corpus(data: Path | None = None) -> Corpus:
    """Read or make the corpus; what takes long is kept for the next time."""
    data = data or MULTI30K
    WORK.mkdir(parents=True, exist_ok=True)
    there = (data / "train.en.gz").is_file()
    return _multi30k(data) if there else _generated()


def read_lines(file: Path) -> list[str]:
    """The lines of a compressed file."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def _multi30k(data: Path) -> Corpus:
    file, pairs = WORK / "tokenizer.json", WORK / "multi30k.npz"
    if not file.is_file() or not pairs.is_file():
        sides = [read_lines(data / f"train.{language}.gz") for language in ("en", "de")]
        tokenizer = Tokenizer.train([*sides[0], *sides[1]], VOCABULARY)
        _save(pairs, *(tokenizer.encode_batch(side) for side in sides))
        tokenizer.save(file)
    tokenizer = Tokenizer.load(file)
    test, references = (read_lines(data / f"test_2016_flickr.{language}.gz") for language in ("en", "de"))
    return Corpus("Multi30k", pairs, tokenizer, tokenizer.encode_batch(test), references)


def _generated() -> Corpus:
    file, pairs = WORK / "generated-tokenizer.json", WORK / "generated.npz"
    draw = np.random.default_rng(1)

    def sentences(count: int) -> list[list[int]]:
        lengths = np.clip(draw.lognormal(*LOG_LENGTH, count).astype(int), 2, 60)
        return [draw.integers(END + 1, VOCABULARY, length).tolist() for length in lengths]

    _save(pairs, sentences(4000), sentences(4000))
    if not file.is_file():
        words = [" ".join(f"{number:05d}" for number in range(start, start + 20)) for start in range(0, 60_000, 20)]
        Tokenizer.train(words, VOCABULARY).save(file)
    tokenizer = Tokenizer.load(file)
    most = tokenizer.vocabulary_size - 1
    return Corpus("generated", pairs, tokenizer, [[min(i, most) for i in each] for each in sentences(1000)], None)


def _save(file: Path, sources: list[list[int]], targets: list[list[int]]) -> None:
    arrays = {}
    for side, rows in (("source", sources), ("target", targets)):
        arrays[f"{side}_ids"] = np.concatenate([np.array(row, np.uint16) for row in rows])
        arrays[f"{side}_lengths"] = np.array([len(row) for row in rows], np.int32)
    np.savez(file, **arrays)


def save_json(name: str, content: object) -> Path:
    """Put something for a driver into a file."""
    file = WORK / name
    file.write_text(json.dumps(content), encoding="utf-8")
    return file
