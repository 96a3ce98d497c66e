"""What weights of 8 bits cost: BLEU with them less BLEU in fp32, by heedful's engine, and the mean over models.

python benchmarks/int8_bleu.py --model en-de test.en test.de --model en-fr test.en test.fr    # results/int8_bleu.json
python benchmarks/int8_bleu.py --model en-de test.en test.de --lines 50                       # a quick try: only prints
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import results
import sacrebleu

import heedful
from heedful.tasks.computing import Precision

# At most so much worse, on average.
REQUIRED = ">= -0.2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs=3, action="append", required=True, metavar=("FOLDER", "SOURCE", "REFERENCE"))
    parser.add_argument("--lines", type=int, help="only the first so many lines of each test")
    given = parser.parse_args()
    rows = measure(given.model, given.lines)
    if given.lines is None:
        results.write("int8_bleu", rows)
        return
    for row in rows:
        print(f"{row['measure']:45} {row['value']:>8} required: {row['required']}")


def measure(tests: list[list[str]], lines: int | None) -> list[dict[str, Any]]:
    """The rows of each model, and those of all."""
    command, started = "python benchmarks/int8_bleu.py " + " ".join(sys.argv[1:]), time.monotonic()
    rows: list[dict[str, Any]] = []

    def add(measure: str, value: float, unit: str, required: str = "-") -> None:
        rows.append(results.row(measure, round(value, 3), unit, required, time.monotonic() - started, command))

    differences = []
    for folder, source, reference in tests:
        texts, references = lines_of(source)[:lines], lines_of(reference)[:lines]
        name = Path(folder).resolve().name
        fp32, int8 = (bleu(folder, precision, texts, references) for precision in ("fp32", "int8"))  # type: ignore[arg-type]
        differences.append(int8 - fp32)
        for precision, score in (("fp32", fp32), ("int8", int8)):
            add(f"{name}: BLEU, {precision}", score, f"{len(texts)} lines")
        add(f"{name}: difference, int8 - fp32", differences[-1], "points")
    add(f"mean difference, int8 - fp32, models: {len(tests)}", statistics.mean(differences), "points", REQUIRED)
    return rows


def bleu(folder: str, precision: Precision, texts: list[str], references: list[str]) -> float:
    """The score of a model's translations of a test."""
    translator = heedful.load(folder, precision=precision, engine="core")
    found = [each.text for each in translator.translate(texts)]  # type: ignore[union-attr]
    return float(sacrebleu.BLEU().corpus_score(found, [references]).score)


def lines_of(file: str) -> list[str]:
    """The lines of a file, which may be compressed."""
    content = Path(file).read_bytes()
    text = gzip.decompress(content) if file.endswith(".gz") else content
    return text.decode("utf-8").splitlines()


if __name__ == "__main__":
    main()
