"""Multi30k English-German: 45 minutes of training on this machine, then BLEU on test_2016_flickr.

    .venv/bin/python benchmarks/multi30k.py --data ../shared/data/multi30k

The data is task 1 of https://github.com/multi30k/dataset: train, val and test_2016_flickr, .en.gz and .de.gz.
Stopped and started again, it goes on where it was. All settings are heedful's own choices,
but for the length penalty, which is chosen on val.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import results

COMMAND = "python benchmarks/multi30k.py"
# The one for the test set is chosen on the validation set.
LENGTH_PENALTIES = (0.6, 1.0, 1.4, 1.8, 2.2)


def heedful(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a heedful command to its end."""
    command = [sys.executable, "-m", "heedful", *arguments]
    print("+ heedful", *arguments, flush=True)
    return subprocess.run(command, check=True, text=True, **options)  # type: ignore[call-overload]


def scored(measure: str, scores: dict[str, Any], required: str = "-") -> dict[str, Any]:
    """A row with the BLEU score of an evaluation."""
    return results.row(
        measure, round(scores["bleu"], 2), scores["bleu_signature"], required, scores["seconds"], COMMAND
    )


def main() -> None:
    """Train, evaluate, write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/multi30k"))
    parser.add_argument("--out", default="benchmarks/runs/multi30k")
    parser.add_argument("--budget", default="45m")
    options = parser.parse_args()

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
        results.row("training time, all included", round(state["elapsed"] / 60, 2), "minutes", "<= 46", wall, COMMAND)
    ]
    steps = [json.loads(line) for line in Path(options.out, "run", "metrics.jsonl").read_text().splitlines()]
    padding = [step["padding"] for step in steps if step["kind"] == "train"]
    share = round(100 * sum(padding) / len(padding), 2)
    rows.append(results.row("padding in training batches", share, "%", "<= 10", wall, COMMAND))

    def evaluate(name: str, length_penalty: float) -> dict[str, Any]:
        files = ["--source", file(f"{name}.en"), "--reference", file(f"{name}.de")]
        search = ["--beam", "5", "--length-penalty", str(length_penalty)]
        return json.loads(heedful("evaluate", options.out, *files, *search, "--json", stdout=subprocess.PIPE).stdout)

    on_val = {alpha: evaluate("val", alpha) for alpha in LENGTH_PENALTIES}
    alpha = max(LENGTH_PENALTIES, key=lambda each: on_val[each]["bleu"])
    rows += [scored(f"BLEU, val, beam 5, length penalty {each}", on_val[each]) for each in LENGTH_PENALTIES]
    test = evaluate("test_2016_flickr", alpha)
    rows.append(scored(f"BLEU, test_2016_flickr, beam 5, length penalty {alpha}", test, ">= 38.0"))
    chrf, speed = round(test["chrf"], 2), round(test["sentences"] / test["seconds"], 1)
    rows.append(results.row("chrF, test_2016_flickr", chrf, test["chrf_signature"], "-", test["seconds"], COMMAND))
    rows.append(results.row("speed, test_2016_flickr, beam 5", speed, "sentences/s", "-", test["seconds"], COMMAND))
    for name, scores in (("val", on_val[alpha]), ("test_2016_flickr", test)):
        perplexity = round(scores["perplexity"], 3)
        rows.append(results.row(f"perplexity, {name}", perplexity, "per subword", "-", scores["seconds"], COMMAND))
    results.write("multi30k", rows)


if __name__ == "__main__":
    main()
