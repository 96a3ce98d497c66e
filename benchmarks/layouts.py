"""Training under every layout beside one process: `python -m benchmarks.layouts`.

Real processes on this machine, connected by gloo, train a small translation model, a GPT and a ViT for 50 steps, with
dropout, each by the command that users give. Copies of the model with exact sums must give the bits of one process.
Shards, split layers, both, and pipeline stages must give its losses up to rounding, in double and in single precision,
and the same decoded text. Runs that were saved after step 25 under 2 x 2 go on in 1, 2 and 4 processes, to that end.

Processes are started once for each number of them, and do one run after the other: most of the time is training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from safetensors import safe_open

from heedful.cli.main import cli
from heedful.tasks.loading import load

COMMAND = "python -m benchmarks.layouts"
STEPS, SAVED = 50, 25
TOLERANCE = {"float64": 1e-9, "float32": 1e-4}
WORDS = ["red", "green", "blue", "white", "black", "one", "two", "three", "four", "five", "dog", "cat", "sun", "moon"]
CLASSES = ("dark", "light", "striped")
STACK = "{num_layers=2, dropout=0.1, attention={num_heads=2, dropout=0.1}, feed_forward={inner_width=46, dropout=0.1}}"
TRAINING = {
    "training.machine": "{workers=4, threads=1}",
    "training.saving": f"{{validate_every_steps={SAVED}, checkpoint_seconds=1e6}}",
    "training.batches": "{tokens_per_step=300, tokens_per_batch=300}",
    "model.width": "32",
}
# Axes of training.parallel, with their sizes.
Layout = dict[str, int]
COPIES: list[Layout] = [{"replicate": 2}, {"replicate": 4}]
TWO_BY_TWO: Layout = {"shard": 2, "tensor": 2}
SPREAD: list[Layout] = [{"shard": 2}, {"tensor": 2}, TWO_BY_TWO]
# How runs that were saved under 2 x 2 go on: in one process, in two, and in four that are laid out in another way.
CONTINUED: list[Layout] = [{}, {"shard": 2}, {"replicate": 2, "shard": 2}]


@dataclass(frozen=True)
class Model:
    """A model to train: the command, its files, its settings, the layouts of its own, and how it is used in the end."""

    command: str
    files: dict[str, str]
    settings: dict[str, str]
    layouts: list[Layout]
    use: Callable[[Any, Path], list[str]]


def _translations(model: Any, data: Path) -> list[str]:
    return [each.text for each in model.translate((data / "a.en").read_text().splitlines()[:20], beam=2)]


def _continuations(model: Any, data: Path) -> list[str]:
    return [each for found in model.generate(["red", "the moon", ""]) for each in found]


def _classes(model: Any, data: Path) -> list[str]:
    return [each.label for each in model.classify(sorted((data / "images").rglob("*.png"))[::10])]


MODELS = {
    "translation": Model(
        "translation",
        {"--source": "a.en", "--target": "a.de"},
        {
            "model.max_length": "20",
            "model.encoder": STACK.replace("num_layers=2", "num_layers=1"),
            "model.decoder": STACK,
        },
        SPREAD,
        _translations,
    ),
    "GPT": Model(
        "language-model",
        {"--text": "text.txt"},
        {"model.max_length": "24", "model.stack": STACK},
        [*SPREAD, {"pipeline": 2}, {"replicate": 2, "pipeline": 2}],
        _continuations,
    ),
    "ViT": Model(
        "image-classifier",
        {"--images": "images"},
        {"model.image_size": "[12, 12]", "model.patch_size": "[3, 3]", "model.stack": STACK},
        SPREAD,
        _classes,
    ),
}


@dataclass(frozen=True)
class Run:
    """A run of a model, in a precision and a layout; one that is `continued` was saved under 2 x 2 before."""

    model: str
    precision: str
    layout: Layout
    continued: bool = False

    @property
    def processes(self) -> int:
        """As many as the axes ask for."""
        return math.prod(self.layout.values())

    @property
    def name(self) -> str:
        """What is run, in words."""
        axes = " x ".join(f"{axis} {size}" for axis, size in self.layout.items()) or "1 process"
        return f"{self.model}, {self.precision}, {'saved under 2 x 2, then ' * self.continued}{axes}"

    def folder(self, base: Path) -> Path:
        """Where its model goes."""
        return base / self.name.replace(",", "").replace(" ", "-")

    def arguments(self, base: Path) -> list[str]:
        """The command that users give."""
        model = MODELS[self.model]
        settings = {**TRAINING, **model.settings, **{f"training.parallel.{axis}": n for axis, n in self.layout.items()}}
        files = [f"{option}={base / 'data' / name}" for option, name in model.files.items()]
        sets = [f"--set={name}={value}" for name, value in settings.items()]
        return ["train", model.command, *files, *sets, f"--steps={STEPS}", f"--out={self.folder(base)}"]


def write_data(folder: Path) -> None:
    """Sentences and their capitals, a text, and images of three kinds: all drawn from a seed."""
    draw, pixels = random.Random(3), np.random.default_rng(5)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(500)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.en").write_text("\n".join(lines) + "\n")
    (folder / "a.de").write_text("\n".join(line.upper() for line in lines) + "\n")
    (folder / "text.txt").write_text("\n".join(". ".join(lines[at : at + 8]) for at in range(0, 500, 8)) + "\n")
    for kind in CLASSES:
        (folder / "images" / kind).mkdir(parents=True, exist_ok=True)
        for number in range(60):
            bytes_HW = pixels.integers(0, 160, (12, 12)) + 95 * (kind == "light")
            bytes_HW[:: 2 if kind == "striped" else 12] = 255
            Image.fromarray(bytes_HW.astype(np.uint8)).save(folder / "images" / kind / f"{number}.png")


def train_all(runs: Sequence[Run], base: Path) -> None:
    """Take runs of the same number of processes to their ends, one after the other."""
    size = runs[0].processes
    stores = [dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) for _ in runs]
    context = multiprocessing.get_context("spawn")
    ports = [store.port for store in stores]
    processes = [context.Process(target=_process, args=(rank, size, ports, runs, base)) for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit(f"a process has failed: see {base}/*.log")


def _process(rank: int, size: int, ports: Sequence[int], runs: Sequence[Run], base: Path) -> None:
    """One of the processes of some runs; what it says goes into a log."""
    log = (base / f"{size}-{rank}.log").open("a")
    os.dup2(log.fileno(), sys.stdout.fileno())
    os.dup2(log.fileno(), sys.stderr.fileno())
    torch.set_num_threads(1)
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    for run, port in zip(runs, ports, strict=True):
        if size > 1:  # what torchrun tells its processes
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
        torch.set_default_dtype(getattr(torch, run.precision))
        cli.main(run.arguments(base), standalone_mode=False)


def by_processes(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of the same number of processes together."""
    return [found for size in (1, 2, 4) if (found := [run for run in runs if run.processes == size])]


def copy_as_saved(run: Run, base: Path) -> None:
    """Put into a run's folder, if there is none, what the run under 2 x 2 had saved after step 25."""
    if run.folder(base).exists():
        return
    shutil.copytree(Run(run.model, run.precision, TWO_BY_TWO).folder(base), run.folder(base))
    shutil.rmtree(run.folder(base) / "run" / "checkpoints" / f"step-{STEPS:09d}")


def measured(folder: Path) -> list[dict[str, Any]]:
    """All that a run has measured."""
    return [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]


def weights_digest(folder: Path) -> str:
    """A hash of all weights of a model folder, by name."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "np") as tensors:
            for name in sorted(tensors.keys()):
                digest.update(name.encode() + tensors.get_tensor(name).tobytes())
    return digest.hexdigest()


class Comparison:
    """Runs beside those of the same model and precision in one process."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def rows(self, run: Run) -> list[dict[str, Any]]:
        """The figures of a run: what differs from one process."""
        one, folder = Run(run.model, run.precision, {}).folder(self.base), run.folder(self.base)
        pairs = list(zip(measured(one), measured(folder), strict=True))
        assert len(pairs) == STEPS + STEPS // SAVED and all(a["step"] == b["step"] for a, b in pairs)
        seconds = sum(other["seconds"] for _, other in pairs)
        found = [
            _row(f"{run.name}: texts that differ", self._texts_that_differ(run, pairs), "", "0", seconds),
        ]
        if run.layout in COPIES and not run.continued:
            different = sum(a["loss"] != b["loss"] for a, b in pairs)
            weights = int(weights_digest(one) != weights_digest(folder))
            return [
                _row(f"{run.name}: losses with other bits", different, f"of {len(pairs)}", "0", seconds),
                _row(f"{run.name}: weights with another hash", weights, "", "0", seconds),
                *found,
            ]
        apart = max(abs(a["loss"] - b["loss"]) for a, b in pairs)
        required = f"<= {TOLERANCE[run.precision]:g}"
        return [
            _row(f"{run.name}: losses, largest difference", float(f"{apart:.2g}"), "nats", required, seconds),
            *found,
        ]

    def _texts_that_differ(self, run: Run, pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> int:
        """Among the held-out examples of the validations, and those of the model folder in the end."""
        differing = sum(a.get("examples") != b.get("examples") for a, b in pairs)
        one = Run(run.model, run.precision, {})
        texts, others = (MODELS[run.model].use(load(each.folder(self.base)), self.base / "data") for each in (one, run))
        return differing + sum(a != b for a, b in zip(texts, others, strict=True))


def _row(measure: str, value: float, unit: str, required: str, seconds: float) -> dict[str, Any]:
    from benchmarks.results import row

    return row(measure, value, unit, required, seconds, COMMAND)


def main() -> None:
    """Train everything, compare, and write benchmarks/results/layouts.json."""
    from benchmarks.results import write

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="a folder for the runs: stopped and started again, it goes on")
    base = parser.parse_args().keep or Path(tempfile.mkdtemp())
    began = time.monotonic()
    write_data(base / "data")
    alone = [Run(model, precision, {}) for model in MODELS for precision in TOLERANCE]
    copies = [Run(model, "float32", layout) for model in MODELS for layout in COPIES]
    spread = [
        Run(name, precision, each)
        for name, model in MODELS.items()
        for precision in TOLERANCE
        for each in model.layouts
    ]
    continued = [Run(model, kind, each, True) for model in MODELS for kind in TOLERANCE for each in CONTINUED]
    compare, rows = Comparison(base), []
    for runs in [*by_processes([*alone, *copies, *spread]), *by_processes(continued)]:
        for run in runs:
            if run.continued:
                copy_as_saved(run, base)
        train_all(runs, base)
        rows += [row for run in runs if run not in alone for row in compare.rows(run)]
        write("layouts", rows)  # what there is so far: the last of them take longest
    print(f"{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
