"""Text classification: IMDB from scratch, IMDB with 1,000 labels after pretraining, and TREC.

    .venv/bin/python benchmarks/text_classification.py --data ../shared/data imdb | few-labels | trec

IMDB (aclImdb v1) is read from imdb/train.tsv.gz and imdb/test.tsv.gz, label TAB text; TREC (question classification)
from trec/train.txt and trec/test.txt, COARSE:fine question. The test sets are looked at once, at the end: all
settings are defaults or were chosen on held-out training data. Stopped and started again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import results

RUNS = Path("benchmarks/runs/text_classification")
LABELS, EPOCHS, SEEDS = 1000, 8, (1, 2, 3, 4, 5)
PRETRAINING_EPOCHS = 5


def heedful(*arguments: object) -> str:
    """Run a heedful command to its end, and give what it prints."""
    print("+ heedful", *arguments, flush=True)
    command = [sys.executable, "-m", "heedful", *map(str, arguments)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def accuracy(model: Path, test: Path) -> float:
    """The share of a test set that a model gets right, in percent."""
    return 100 * json.loads(heedful("evaluate", model, "--data", test, "--json"))["accuracy"]


def elapsed(model: Path) -> float:
    """Seconds that a run took, all included."""
    states = (model / "run" / "checkpoints").glob("step-*/state.json")
    return float(json.loads(max(states).read_text(encoding="utf-8"))["elapsed"])


def command_of(part: str) -> str:
    """The command that measures a part."""
    return f"python benchmarks/text_classification.py {part}"


def row(measure: str, value: float, unit: str, required: str, seconds: float, part: str) -> dict[str, Any]:
    """One measured figure of this benchmark."""
    return results.row(measure, round(value, 2), unit, required, seconds, command_of(part))


def imdb(data: Path) -> None:
    """All labels, from scratch, in 15 minutes."""
    model = RUNS / "imdb"
    heedful("train", "classifier", "--data", data / "imdb" / "train.tsv.gz", "--out", model, "--budget", "15m")
    seconds = elapsed(model)
    found = accuracy(model, data / "imdb" / "test.tsv.gz")
    rows = [
        row("IMDB from scratch: test accuracy", found, "%", ">= 88.5", seconds, "imdb"),
        row("IMDB from scratch: training time, all included", seconds / 60, "minutes", "<= 15", seconds, "imdb"),
        results.health(model, command_of("imdb")),
    ]
    results.write("imdb", rows)


def few_labels(data: Path) -> None:
    """1,000 labels, with and without pretraining on the text of the others, for five seeds."""
    RUNS.mkdir(parents=True, exist_ok=True)
    with gzip.open(data / "imdb" / "train.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        lines = sorted(set(file.read().splitlines()))
    random.Random(0).shuffle(lines)
    unlabelled = RUNS / "unlabelled.txt"
    texts = [line.split("\t", 1)[1] for line in lines[LABELS:]]
    unlabelled.write_text("\n".join(texts) + "\n", encoding="utf-8", newline="\n")
    labelled = RUNS / "labelled.tsv"
    labelled.write_text("\n".join(lines[:LABELS]) + "\n", encoding="utf-8", newline="\n")
    pretrained = RUNS / "pretrained"
    heedful(
        *("train", "masked-language-model", "--text", unlabelled, "--document", "line"),
        *("--out", pretrained, "--epochs", PRETRAINING_EPOCHS),
    )
    scores: dict[str, list[float]] = {"from scratch": [], "pretrained": []}
    seconds, runs = elapsed(pretrained), [pretrained]
    for seed in SEEDS:
        for kind, start in (("from scratch", []), ("pretrained", ["--from", pretrained])):
            model = RUNS / f"{kind.replace(' ', '-')}-{seed}"
            heedful(
                *("train", "classifier", "--data", labelled, "--out", model, "--epochs", EPOCHS),
                *(f"--set=training.seed={seed}", *start),
            )
            seconds += elapsed(model)
            runs.append(model)
            scores[kind].append(accuracy(model, data / "imdb" / "test.tsv.gz"))
    means = {kind: statistics.mean(values) for kind, values in scores.items()}
    rows = []
    for kind, values in scores.items():
        each = ", ".join(f"{value:.2f}" for value in values)
        rows.append(
            row(f"IMDB, 1,000 labels, {kind}: mean of 5 seeds", means[kind], f"% ({each})", "-", seconds, "few-labels")
        )
        rows.append(
            row(f"IMDB, 1,000 labels, {kind}: deviation", statistics.stdev(values), "%", "-", seconds, "few-labels")
        )
    gain = means["pretrained"] - means["from scratch"]
    rows.append(row("gain by pretraining", gain, "points", ">= 3", seconds, "few-labels"))
    rows += [results.health(run, command_of("few-labels")) for run in runs]
    results.write("imdb_few_labels", rows)


def trec(data: Path) -> None:
    """The six coarse classes of questions, in 3 minutes."""
    RUNS.mkdir(parents=True, exist_ok=True)
    for name in ("train", "test"):
        lines = (data / "trec" / f"{name}.txt").read_text(encoding="latin-1").splitlines()
        rows = [line.split(" ", 1) for line in lines if line.strip()]
        table = "".join(f"{label.split(':')[0]}\t{text}\n" for label, text in rows)
        (RUNS / f"trec-{name}.tsv").write_text(table, encoding="utf-8", newline="\n")
    model = RUNS / "trec"
    heedful("train", "classifier", "--data", RUNS / "trec-train.tsv", "--out", model, "--budget", "3m")
    seconds = elapsed(model)
    found = accuracy(model, RUNS / "trec-test.tsv")
    accuracy_row = row("TREC coarse: test accuracy", found, "%", ">= 86", seconds, "trec")
    results.write("trec", [accuracy_row, results.health(model, command_of("trec"))])


PARTS = {"imdb": imdb, "few-labels": few_labels, "trec": trec}


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    PARTS[options.part](options.data)


if __name__ == "__main__":
    main()
