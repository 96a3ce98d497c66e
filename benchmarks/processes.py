"""What processes and checkpoints cost: `python -m benchmarks.processes`, on a machine with two idle cores.

The same run, step for step, in one process with two workers and in two processes with one each, with exact sums of
gradients; and both once more with a checkpoint every few seconds. They take turns, in as many rounds as fit into the
time; of each figure the median over the rounds counts. What is measured is the wall time from the end of the first
steps to the end of the last one: waiting, exchanging and saving are in it, starting and validating are not.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import results

COMMAND = "python -m benchmarks.processes"
SECONDS, STEPS, WARM_UP, CHECKPOINT_SECONDS = 330.0, 24, 4, 3.0
SETTINGS = [
    "model.width=256",
    "model.encoder={num_layers=3, attention={num_heads=4}, feed_forward={inner_width=1024}}",
    "model.decoder={num_layers=3, attention={num_heads=4}, feed_forward={inner_width=1024}}",
    "training.batches={tokens_per_step=4000, tokens_per_batch=4000}",
    "training.machine={workers=2, threads=1}",
    "training.saving.validations=1",
]
# How each run is started, and whether checkpoints are written.
WORKERS, PROCESSES = "2 workers", "2 processes"
VARIANTS = [(kind, saves) for kind in (WORKERS, PROCESSES) for saves in (False, True)]


def write_corpus(folder: Path, pairs: int = 4000) -> None:
    """Pairs of random words, as long as those of news are."""
    draw = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(3000)]
    lines = [" ".join(draw.choices(words, k=draw.randint(8, 32))) for _ in range(pairs)]
    (folder / "text.en").write_text("\n".join(lines) + "\n")
    (folder / "text.de").write_text("\n".join(line.upper() for line in lines) + "\n")


def tokens_per_second(folder: Path, number: int, kind: str, saves: bool, steps: int) -> float:
    """Target tokens per second of a run, which is begun anew."""
    out = folder / f"run-{number}"
    seconds = CHECKPOINT_SECONDS if saves else 1e9
    files = ["--source", folder / "text.en", "--target", folder / "text.de", "--out", out]
    sets = [f"--set={setting}" for setting in (*SETTINGS, f"training.saving.checkpoint_seconds={seconds}")]
    more = ["--processes", "2"] if kind == PROCESSES else []
    command = [sys.executable, "-m", "heedful", "train", "translation", *map(str, files), *sets, *more]
    subprocess.run(
        [*command, "--steps", str(steps)], check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300
    )
    lines = (out / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["kind"] == "train"]
    warm, measured = rows[WARM_UP - 1], rows[WARM_UP:]
    return sum(row["target_tokens"] for row in measured) / (measured[-1]["elapsed"] - warm["elapsed"])


def measure(folder: Path, steps: int, seconds: float) -> list[dict[tuple[str, bool], float]]:
    """The target tokens per second of each variant, round by round, for as long as there is time."""
    write_corpus(folder)
    rounds: list[dict[tuple[str, bool], float]] = []
    begin, longest = time.monotonic(), 0.0
    while not rounds or time.monotonic() - begin + longest < seconds:
        started = time.monotonic()
        # Every second round runs backwards, so that a machine that gets slower does not favour one of them.
        order = VARIANTS if len(rounds) % 2 == 0 else VARIANTS[::-1]
        numbers = range(len(rounds) * len(order), (len(rounds) + 1) * len(order))
        found = {
            each: tokens_per_second(folder, number, *each, steps) for number, each in zip(numbers, order, strict=True)
        }
        rounds.append(found)
        longest = max(longest, time.monotonic() - started)
        words = ", ".join(f"{kind}{' saving' * saves} {found[kind, saves]:,.0f}" for kind, saves in VARIANTS)
        print(f"target tokens/s: {words}", file=sys.stderr, flush=True)
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="begin no round that would end later")
    arguments = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="heedful-processes-") as folder:
        rounds = measure(Path(folder), arguments.steps, arguments.seconds)

    def median(of: tuple[str, bool], to: tuple[str, bool] | None = None) -> float:
        return statistics.median(found[of] / (found[to] if to else 1.0) for found in rounds)

    figures = [
        ("rounds", float(len(rounds)), "rounds", ""),
        *(
            (f"{kind}{', saving' * saves}", round(median((kind, saves))), "target tokens/s", "")
            for kind, saves in VARIANTS
        ),
        ("2 processes / 2 workers", round(median((PROCESSES, False), (WORKERS, False)), 3), "", ">= 0.9"),
        *(
            (
                f"saving every {CHECKPOINT_SECONDS:g} s / never, {kind}",
                round(median((kind, True), (kind, False)), 3),
                "",
                ">= 0.95",
            )
            for kind in (WORKERS, PROCESSES)
        ),
    ]
    seconds = time.monotonic() - begin
    rows = [results.row(name, value, unit, required, seconds, COMMAND) for name, value, unit, required in figures]
    if (arguments.steps, arguments.seconds) == (STEPS, SECONDS):
        results.write("processes", rows)
        return
    for row in rows:
        print(f"{row['measure']:40} {row['value']:>12} {row['unit']:16} required: {row['required']}")


if __name__ == "__main__":
    main()
