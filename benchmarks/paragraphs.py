"""What is left of paragraphs: Multi30k captions, 1, 2, 4 and 120 per line, with and without splitting.

    .venv/bin/python benchmarks/paragraphs.py --data ../shared/data/multi30k

Trains an English-German and a German-English model for ten minutes each, unless they are there. Every caption is scored
against its own reference, since joining alone raises BLEU: with splitting its translation is that of the pieces which
begin in it, without splitting the sentence of the output that stands in its place. Captions that end without . ! or ?
are reported apart.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import time
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import results
import sacrebleu

import heedful
from heedful.text.sentences import sentence_spans

COMMAND = "python benchmarks/paragraphs.py"
PER_LINE = (1, 2, 4, 120)
TEST = "test_2016_flickr"


def train(data: Path, source: str, target: str, out: Path, budget: str) -> None:
    """Train a model with heedful's own choices, or go on with it."""
    files = [f"--source={data / f'train.{source}.gz'}", f"--target={data / f'train.{target}.gz'}"]
    files += [f"--valid-source={data / f'val.{source}.gz'}", f"--valid-target={data / f'val.{target}.gz'}"]
    command = [sys.executable, "-m", "heedful", "train", "translation", *files, f"--out={out}", f"--budget={budget}"]
    subprocess.run(command, check=True)


def captions(data: Path, language: str) -> list[str]:
    """The captions of the test set."""
    with gzip.open(data / f"{TEST}.{language}.gz", "rt", encoding="utf-8", newline="\n") as file:
        return [line.strip() for line in file]


def in_place(text: str, language: str, count: int) -> list[str]:
    """The sentences of a text as the translations of so many captions: the last takes what is left, or is blank."""
    found = [text[start:end] for start, end in sentence_spans(text, language)]
    found[count - 1 :] = [" ".join(found[count - 1 :])]
    return found + [""] * (count - len(found))


def by_caption(pieces: list[tuple[str, str]], captions: list[str]) -> list[str]:
    """The translations of captions, from the pieces (source, translation) that begin in each of them, in order."""
    starts = list(accumulate((len(caption) + 1 for caption in captions), initial=0))
    line, end = " ".join(captions), 0
    found: list[list[str]] = [[] for _ in captions]
    for source, translation in pieces:
        start = line.index(source, end)
        end = start + len(source)
        found[bisect_right(starts, start) - 1].append(translation)
    return [" ".join(parts) for parts in found]


class Measured:
    """One model on one set of captions."""

    def __init__(self, model: Path, sources: list[str], references: list[str]) -> None:
        self.translator = heedful.load(str(model))
        self.sources, self.references = sources, references
        self.alone = [each.text for each in self.translator.translate(sources)]

    def row(self, per_line: int, split: str) -> tuple[float, float, float]:
        """BLEU caption by caption, the share of pieces that are captions, and of captions translated as alone."""
        count = len(self.sources) // per_line * per_line
        lines = [" ".join(self.sources[first : first + per_line]) for first in range(0, count, per_line)]
        language = self.translator.config.target_language or ""
        found: list[str] = []
        right = pieces = 0
        for number, each in enumerate(self.translator.translate(lines, split=split)):
            group = self.sources[number * per_line : (number + 1) * per_line]
            own = [(piece.source, piece.text) for piece in each.pieces] or [(lines[number], each.text)]
            right, pieces = right + sum(source in group for source, _ in own), pieces + len(own)
            found += by_caption(own, group) if len(own) > 1 else in_place(each.text, language, per_line)
        same = sum(a == b for a, b in zip(found, self.alone, strict=False))
        bleu = sacrebleu.corpus_bleu(found, [self.references[:count]]).score
        return bleu, 100 * right / pieces, 100 * same / count


def main() -> None:
    """Train, measure, write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/multi30k"))
    parser.add_argument("--budget", default="10m")
    options = parser.parse_args()
    rows = []
    for source, target in (("en", "de"), ("de", "en")):
        model = Path(f"benchmarks/runs/paragraphs-{source}-{target}")
        train(options.data, source, target, model, options.budget)
        pairs = list(zip(captions(options.data, source), captions(options.data, target), strict=True))
        ended = [pair for pair in pairs if pair[0][-1:] in (".", "!", "?")]
        open_ended = [pair for pair in pairs if pair not in ended]
        for name, chosen in ((f"{len(ended)} captions", ended), (f"{len(open_ended)} without full stop", open_ended)):
            measured = Measured(model, [pair[0] for pair in chosen], [pair[1] for pair in chosen])
            for per_line in PER_LINE:
                if per_line > len(chosen):
                    continue
                for split in ("none", "auto"):
                    started = time.monotonic()
                    bleu, right, same = measured.row(per_line, split)
                    seconds = time.monotonic() - started
                    about = f"{source}-{target}, {name}, {per_line} per line, split {split}"
                    strict = ">= 99" if split == "auto" and chosen is ended else "-"
                    for what, value, unit, required in (
                        ("BLEU", bleu, "caption by caption", "-"),
                        ("pieces that are captions", right, "%", strict),
                        ("captions translated as alone", same, "%", strict),
                    ):
                        rows.append(results.row(f"{about}: {what}", round(value, 2), unit, required, seconds, COMMAND))
    results.write("paragraphs", rows)


if __name__ == "__main__":
    main()
