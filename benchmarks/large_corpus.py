"""Prepare two million generated sentence pairs in a process of its own, and measure its memory and time.

python benchmarks/large_corpus.py                  # writes benchmarks/results/large_corpus.json
python benchmarks/large_corpus.py --pairs 20000    # a quick try, which only prints
"""

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import results

COMMAND = "python benchmarks/large_corpus.py"
PAIRS = 2_000_000
LIMIT_MEGABYTES = 1000
SEED = 20170612

VOCABULARY = 600_000
PAIRS_TOGETHER = 20_000
CONSONANTS = "b c d f g h j k l m n p r s sch st t v w z"
VOWELS = {"source": "a e i o u ea ou", "target": "a e i o u ä ö ü ei au"}


def invent_words(side: str, rng: np.random.Generator) -> npt.NDArray[np.object_]:
    """Distinct words of one to five syllables, the frequent ones short."""
    vowels = VOWELS[side].split()
    syllables = [c + v + end for c in CONSONANTS.split() for v in vowels for end in ("", "n", "r", "s")]
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        sizes = rng.integers(1, 6, 100_000)
        for size, places in zip(sizes, rng.integers(0, len(syllables), (100_000, 5)), strict=True):
            words["".join(syllables[i] for i in places[:size])] = None
    return np.array(sorted(list(words)[:VOCABULARY], key=len), dtype=object)


def rank_distribution() -> npt.NDArray[np.float64]:
    """Cumulated frequencies of words by rank: 1/rank, and falling faster after the first ten thousand.

    With these two regimes of Zipf's law the number of distinct words grows as it does in real texts.
    """
    ranks = np.arange(VOCABULARY) + 2.7
    weights = np.where(ranks < 10_000, 1 / ranks, 10_000**0.8 / ranks**1.8)
    cumulated: npt.NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return cumulated


def sentence_pairs(num_pairs: int) -> Iterator[tuple[bytes, bytes]]:
    """Varied pairs: one in a hundred repeats the one before it, one in a thousand breaks a cleaning rule."""
    rng = np.random.default_rng(SEED)
    source_words, target_words = (invent_words(side, rng) for side in ("source", "target"))
    distribution = rank_distribution()
    pair = b"A first pair.", b"Ein erstes Paar."
    for start in range(0, num_pairs, PAIRS_TOGETHER):
        lengths = np.clip(rng.lognormal(2.9, 0.5, min(PAIRS_TOGETHER, num_pairs - start)).astype(int), 1, 300)
        ranks = np.searchsorted(distribution, rng.random(lengths.sum()))
        sources, targets = source_words[ranks].tolist(), target_words[ranks].tolist()
        begin = 0
        for length, kind in zip(lengths.tolist(), rng.random(len(lengths)).tolist(), strict=True):
            end = begin + length
            if kind > 0.01:
                number = f" {int(kind * 10_000)}" if kind < 0.1 else ""
                source = f"{' '.join(sources[begin:end]).capitalize()}{number}."
                target = f"{' '.join(targets[begin:end][::-1]).capitalize()}{number}."
                pair = source.encode(), target.encode()
            begin = end
            yield spoiled(*pair) if kind > 0.999 else pair


def spoiled(source: bytes, target: bytes) -> tuple[bytes, bytes]:
    """The pair with a fault that one of the rules is for."""
    return [
        (source, b""),
        (source[:5] + b"\xff" + source[5:], target),
        (source, target[:7] + b"\x00\x07" + target[7:]),
        (source, target * 60),
    ][len(source) % 4]


def generate(folder: Path, num_pairs: int) -> list[str]:
    """Write two aligned files and give their paths."""
    paths = [folder / "train.xx", folder / "train.yy"]
    with paths[0].open("wb") as source_file, paths[1].open("wb") as target_file:
        for source, target in sentence_pairs(num_pairs):
            source_file.write(source + b"\n")
            target_file.write(target + b"\n")
    return [str(path) for path in paths]


def prepare(source: str, target: str, folder: str) -> dict[str, Any]:
    """Prepare a corpus in this process and tell what that took."""
    import torch  # noqa: F401 (a training run has it in memory while it prepares its data)

    from heedful.prepared.batches import BucketedBatches
    from heedful.tasks.translation.corpus import ParallelCorpus
    from heedful.tasks.translation.data import PrepareOptions, prepare_translation

    corpus = ParallelCorpus.from_files([source], [target])
    start = time.perf_counter()
    stages: dict[str, float] = {}
    prepared = prepare_translation(
        corpus,
        None,
        folder,
        PrepareOptions(),
        progress=lambda stage, done, total: stages.update({stage: time.perf_counter() - start}),
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if platform.system() == "Darwin" else 1024)
    batches = BucketedBatches(prepared.train.source_lengths + 1, prepared.train.target_lengths + 1, 4000, SEED)
    start = time.perf_counter()
    batches.epoch(0)
    return {
        "peak": peak,
        "seconds": seconds,
        "stages": stages,
        "plan": time.perf_counter() - start,
        "summary": prepared.report.to_dict(),
    }


def measure(num_pairs: int) -> dict[str, Any]:
    """Generate a corpus and prepare it in a new process, whose memory holds nothing else."""
    with tempfile.TemporaryDirectory() as name:
        files = generate(Path(name), num_pairs)
        command = [sys.executable, __file__, "--prepare", *files, str(Path(name) / "run")]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    measured: dict[str, Any] = json.loads(output)
    return measured


def result_rows(measured: dict[str, Any], num_pairs: int) -> list[dict[str, Any]]:
    """The measurements in the form of all result files."""
    figures = [
        ("peak resident memory of preparing", measured["peak"] / 1e6, "MB", f"<= {LIMIT_MEGABYTES}"),
        ("time of preparing", measured["seconds"], "s", "-"),
        ("time of planning an epoch over", measured["plan"], "s", "-"),
        ("pairs kept for training of", measured["summary"]["train_pairs"], "pairs", "-"),
    ]
    return [
        results.row(
            f"{what} {num_pairs:,} generated pairs", round(value, 2), unit, required, measured["seconds"], COMMAND
        )
        for what, value, unit, required in figures
    ]


def main() -> None:
    """Measure, print, write the result file, and fail when the memory was too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--prepare", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.prepare:
        print(json.dumps(prepare(*arguments.prepare)))
        return
    measured = measure(arguments.pairs)
    print(json.dumps(measured, indent=2))
    if arguments.pairs == PAIRS:
        results.write("large_corpus", result_rows(measured, PAIRS))
    if measured["peak"] > LIMIT_MEGABYTES * 1e6:
        sys.exit(f"The peak of {measured['peak'] / 1e6:.0f} MB is over {LIMIT_MEGABYTES} MB.")


if __name__ == "__main__":
    main()
