"""Multi30k English-German: 45 minutes of training on this machine, then BLEU on test_2016_flickr.

    .venv/bin/python benchmarks/multi30k.py --data ../shared/data/multi30k

The data is task 1 of https://github.com/multi30k/dataset: train, val and test_2016_flickr, .en.gz and .de.gz.
Stopped and started again, it goes on where it was. All settings are heedful's own choices.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import results

COMMAND = "python benchmarks/multi30k.py"


def heedful(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a heedful command to its end."""
    command = [sys.executable, "-m", "heedful", *arguments]
    print("+ heedful", *arguments, flush=True)
    return subprocess.run(command, check=True, text=True, **options)  # type: ignore[call-overload]


def main() -> None:
    """Train, evaluate, write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/multi30k"))
    parser.add_argument("--out", default="benchmarks/runs/multi30k")
    parser.add_argument("--budget", default="45m")
    options = parser.parse_args()
    command = f"{COMMAND} --budget {options.budget}"

    def file(name: str) -> str:
        return str(options.data / f"{name}.gz")

    started = time.monotonic()
    train = ["--source", file("train.en"), "--target", file("train.de")]
    valid = ["--valid-source", file("val.en"), "--valid-target", file("val.de")]
    heedful("train", "translation", *train, *valid, "--out", options.out, "--budget", options.budget)
    wall = time.monotonic() - started
    state = json.loads(
        max(Path(options.out, "run", "checkpoints").glob("step-*/state.json")).read_text(encoding="utf-8")
    )
    rows = [
        results.row("training time, all included", round(state["elapsed"] / 60, 2), "minutes", "<= 46", wall, command)
    ]
    steps = [json.loads(line) for line in Path(options.out, "run", "metrics.jsonl").read_text().splitlines()]
    padding = [step["padding"] for step in steps if step["kind"] == "train"]
    share = round(100 * sum(padding) / len(padding), 2)
    rows.append(results.health(Path(options.out), command))
    rows.append(results.row("padding in training batches", share, "%", "<= 10", wall, command))
    for name, required in (("val", "-"), ("test_2016_flickr", ">= 38.0")):
        started = time.monotonic()
        files = ["--source", file(f"{name}.en"), "--reference", file(f"{name}.de")]
        answer = heedful("evaluate", options.out, *files, "--beam", "5", "--json", stdout=subprocess.PIPE)
        seconds = time.monotonic() - started
        scores = json.loads(answer.stdout)
        unit = scores["bleu_signature"]
        rows.append(results.row(f"BLEU, {name}, beam 5", round(scores["bleu"], 2), unit, required, seconds, command))
        rows.append(
            results.row(f"chrF, {name}", round(scores["chrf"], 2), scores["chrf_signature"], "-", seconds, command)
        )
        rows.append(
            results.row(f"perplexity, {name}", round(scores["perplexity"], 3), "per subword", "-", seconds, command)
        )
        speed = scores["sentences"] / scores["seconds"]
        rows.append(results.row(f"speed, {name}, beam 5", round(speed, 1), "sentences/s", "-", seconds, command))
    results.write("multi30k", rows)


if __name__ == "__main__":
    main()
