"""Ten million generated sentence pairs: prepare them, train on them, and begin in their middle.

python benchmarks/large_corpus.py                   # writes benchmarks/results/large_corpus.json
python benchmarks/large_corpus.py --pairs 1000000   # a tenth of it, which only prints
python benchmarks/large_corpus.py --minutes 25      # ends with an error after that time

Each part runs in a process of its own, whose memory holds nothing else: `heedful prepare`, a training of 2,000 steps
with a tiny model, and what a process does that continues a run at a step in the middle of the data.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import results
from generated_pairs import SEED, write_pairs

COMMAND = "python benchmarks/large_corpus.py"
PAIRS = 10_000_000
STEPS = 2_000
# Resident memory is compared from here on: before, buffers are taken that stay.
WARM_STEPS = 200
LIMITS = {"preparing": 1500, "private growth": 10, "growth": 50, "seek": 1.0}
SETTINGS = {
    "model": {
        "width": 32,
        "vocabulary_size": 8000,
        "encoder": {"num_layers": 1, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 64}},
        "decoder": {"num_layers": 1, "attention": {"num_heads": 2}, "feed_forward": {"inner_width": 64}},
    },
    "training": {
        "seed": SEED,
        "limit": {"steps": STEPS},
        "batches": {"tokens_per_step": 1000, "tokens_per_batch": 1000},
        "saving": {"validations": 1},
        "machine": {"device": "cpu", "workers": 1, "threads": 1},
    },
}


def peak_bytes() -> int:
    """The largest resident memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if platform.system() == "Darwin" else 1024)


def resident_bytes() -> tuple[int, int]:
    """The resident memory of this process now, with mapped files and without them."""
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return resident * resource.getpagesize(), (resident - shared) * resource.getpagesize()


def run_of(folder: Path) -> Any:
    """The run, as the command line would make it of files and settings."""
    from heedful.tasks.translation.job import TranslationData
    from heedful.training.run_config import RunConfig

    data = TranslationData(source=(str(folder / "train.xx"),), target=(str(folder / "train.yy"),))
    return RunConfig(str(folder / "out"), data, "translation_tiny", SETTINGS)


def prepare(folder: Path) -> dict[str, Any]:
    """Prepare the corpus, and tell what that took."""
    from heedful.training.display import display_on_stderr
    from heedful.training.preparation import prepare as prepare_run

    start = time.perf_counter()
    done = prepare_run(run_of(folder), display_on_stderr())
    seconds = time.perf_counter() - start
    kept = int(done.data.choices()[0].value.replace(",", ""))
    return {"peak": peak_bytes(), "seconds": seconds, "bytes": done.size, "pairs": kept}


def train(folder: Path) -> dict[str, Any]:
    """Train on the prepared corpus, and tell how much memory was resident as it went on."""
    from rich.console import Console

    from heedful.training.display import RunDisplay
    from heedful.training.run import train as run_training

    resident: list[tuple[int, int]] = []

    class Watching(RunDisplay):
        """Shows a run, and notes the resident memory at each step."""

        def step(self, row: dict[str, Any], progress: float | None) -> None:
            resident.append(resident_bytes())
            super().step(row, progress)

    start = time.perf_counter()
    run_training(run_of(folder), Watching(Console(stderr=True)))
    seconds, first_steps = time.perf_counter() - start, range(0, len(resident), WARM_STEPS)
    most = [[max(kind) for kind in zip(*resident[first : first + WARM_STEPS], strict=True)] for first in first_steps]
    return {"seconds": seconds, "resident": [both for both, _ in most], "private": [private for _, private in most]}


def seek(folder: Path) -> dict[str, Any]:
    """Do what another process than the first does to continue in the middle of an epoch, and time its parts."""
    import torch

    from heedful.models.encoder_decoder import EncoderDecoder
    from heedful.prepared.folder import Expected
    from heedful.tasks.task import LearningSettings
    from heedful.training.resolve import asked_model_settings
    from heedful.training.saved_run import begun_run

    run = run_of(folder)
    found = begun_run(run, folder / "out" / "run" / "config.json")
    assert found is not None
    run, saved = found
    torch.set_num_threads(1)
    model = EncoderDecoder(saved.resolved.model)
    seconds = {}
    start = time.perf_counter()
    expected = Expected(saved.data_key, is_checked=True)
    data = run.data.prepare(folder / "out" / "run", asked_model_settings(run), lambda *_: None, expected)
    seconds["opening"] = time.perf_counter() - start
    start = time.perf_counter()
    task = data.task(model, LearningSettings(1000, 0.1, SEED))
    seconds["planning"] = time.perf_counter() - start
    start = time.perf_counter()
    batches = task.epoch_batches(3)
    task.collate(batches[len(batches) // 2])
    seconds["seek"] = time.perf_counter() - start
    return {**seconds, "batches": len(batches), "peak": peak_bytes()}


PARTS: dict[str, Callable[[Path], dict[str, Any]]] = {"prepare": prepare, "train": train, "seek": seek}


def measure(num_pairs: int, minutes: float) -> dict[str, dict[str, Any]]:
    """Generate a corpus, and run each part in a new process, all within some minutes."""
    end = time.monotonic() + 60 * minutes
    measured: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        start = time.perf_counter()
        write_pairs(Path(name), num_pairs)
        measured["generate"] = {"seconds": time.perf_counter() - start}
        for part in PARTS:
            command = [sys.executable, __file__, "--part", part, name]
            left = max(1.0, end - time.monotonic())
            try:
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=left).stdout
            except subprocess.TimeoutExpired:
                sys.exit(f"the {minutes:g} minutes are over, and the part {part!r} is not done")
            measured[part] = json.loads(output.splitlines()[-1])
            print(part, json.dumps(measured[part]), flush=True)
    return measured


def result_rows(measured: dict[str, dict[str, Any]], num_pairs: int) -> list[dict[str, Any]]:
    """The measurements in the form of all result files."""
    prepared, trained, sought = (measured[part] for part in PARTS)
    resident, private = ([each / 1e6 for each in trained[kind]] for kind in ("resident", "private"))
    first, last = f"steps {WARM_STEPS + 1} to {2 * WARM_STEPS}", f"the last {WARM_STEPS} of {STEPS:,} steps"
    figures = [
        ("time of generating", measured["generate"]["seconds"], "s", "-", measured["generate"]["seconds"]),
        ("time of preparing", prepared["seconds"], "s", "-", prepared["seconds"]),
        (
            "peak resident memory of preparing",
            prepared["peak"] / 1e6,
            "MB",
            f"<= {LIMITS['preparing']}",
            prepared["seconds"],
        ),
        ("size of the prepared folder of", prepared["bytes"] / 1e6, "MB", "-", prepared["seconds"]),
        ("pairs kept for training of", prepared["pairs"], "pairs", "-", prepared["seconds"]),
        (f"resident memory in {first} on", resident[1], "MB", "-", trained["seconds"]),
        (f"resident memory in {last} on", resident[-1], "MB", "-", trained["seconds"]),
        (
            "growth of the resident memory after that on",
            max(resident[2:]) - resident[1],
            "MB",
            f"<= {LIMITS['growth']}",
            trained["seconds"],
        ),
        (
            "growth of what of it is not mapped files on",
            max(private[2:]) - private[1],
            "MB",
            f"<= {LIMITS['private growth']}",
            trained["seconds"],
        ),
        ("time until another process has opened", sought["opening"], "s", "-", sought["opening"]),
        ("time until it has sorted by length", sought["planning"], "s", "-", sought["planning"]),
        ("time of seeking to the middle of an epoch of", sought["seek"], "s", f"<= {LIMITS['seek']:g}", sought["seek"]),
        ("peak resident memory of that process with", sought["peak"] / 1e6, "MB", "-", sought["seek"]),
    ]
    return [
        results.row(f"{what} {num_pairs:,} generated pairs", round(value, 3), unit, required, seconds, COMMAND)
        for what, value, unit, required, seconds in figures
    ]


def main() -> None:
    """Measure, print, write the result file, and fail where a figure is not what is required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        part, folder = arguments.part
        print(json.dumps(PARTS[part](Path(folder))))
        return
    rows = result_rows(measure(arguments.pairs, arguments.minutes), arguments.pairs)
    if arguments.pairs == PAIRS:
        results.write("large_corpus", rows)
    missed = [row for row in rows if row["required"] != "-" and row["value"] > float(row["required"].split()[1])]
    for row in rows:
        print(f"{row['measure']}: {row['value']:,} {row['unit']} (required: {row['required']})")
    sys.exit(f"not as required: {', '.join(row['measure'] for row in missed)}" if missed else 0)


if __name__ == "__main__":
    main()
