"""A run whose model is spread over processes is saved, killed and continued in any other layout."""

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.tasks.language_modeling.generation import GenerationOptions
from pickles import pickled_files

STEPS = 14
SETTINGS = [
    "model.width=32",
    "model.stack={num_layers=2, dropout=0.2, attention={num_heads=4, dropout=0.1}, feed_forward={inner_width=44}}",
    "model.max_length=20",
    "training.batches={tokens_per_step=400, tokens_per_batch=100}",
    "training.saving={validations=3, checkpoint_seconds=0.0}",
    "training.machine={workers=4, threads=1}",
    "training.ema_decay=0.9",
    "training.average_checkpoints=2",
]
LAYOUTS = {
    "one": [],
    "two": ["--processes=2", "--set=training.parallel.shard=2"],
    "two by two": ["--processes=4", "--set=training.parallel={shard=2, tensor=2}"],
    "four": ["--processes=4", "--set=training.parallel={replicate=2, tensor=2}"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, make_sentences) -> Path:
    path = tmp_path_factory.mktemp("spread")
    (path / "text.txt").write_text("\n".join(make_sentences(300, seed=13)) + "\n")
    return path


def command(folder: Path, out: str, layout: str) -> list[str]:
    sets = [f"--set={setting}" for setting in SETTINGS]
    arguments = ["train", "language-model", "--text", folder / "text.txt", "--out", folder / out, "--steps", STEPS]
    return [sys.executable, "-m", "heedful", *map(str, arguments), *sets, *LAYOUTS[layout]]


def finish(folder: Path, out: str, layout: str) -> list[dict[str, Any]]:
    result = subprocess.run(command(folder, out, layout), capture_output=True, timeout=240, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stderr.decode()[-3000:]
    return rows(folder / out)


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]


def checkpoints(out: Path) -> list[str]:
    return sorted(each.name for each in (out / "run" / "checkpoints").glob("step-*"))


def killed_after(folder: Path, out: str, layout: str, step: int, rank: int) -> None:
    """Kill one process of a run, with no word to the others, once a checkpoint of that step or a later one is there."""
    log, deadline = folder / out / "run" / "logs" / f"rank-{rank}.log", time.monotonic() + 240
    with subprocess.Popen(command(folder, out, layout), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        while not checkpoints(folder / out) or int(checkpoints(folder / out)[-1][5:]) < step:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.002)
        starts = [json.loads(line) for line in log.read_text().splitlines() if '"start"' in line]
        os.kill(starts[-1]["process"], signal.SIGKILL)
        saved = checkpoints(folder / out)[-1]
        process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    assert checkpoints(folder / out)[-1] >= saved, "what was saved is lost"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_saved_in_two_by_two_processes_killed_and_continued_in_other_layouts(folder: Path) -> None:
    whole = finish(folder, "whole", "one")
    killed_after(folder, "begun", "two by two", 3, rank=3)
    killed_after(folder, "begun", "two by two", 6, rank=0)
    newest = folder / "begun" / "run" / "checkpoints" / checkpoints(folder / "begun")[-1]
    assert (newest / "rank-00003.safetensors").is_file() and not (newest / "model.safetensors").exists()
    assert pickled_files(folder / "begun") == []
    for layout in ("one", "two", "four"):
        shutil.copytree(folder / "begun", folder / layout)
        continued = finish(folder, layout, layout)
        for one, other in zip(whole, continued, strict=True):
            assert (one["kind"], one["step"]) == (other["kind"], other["step"])
            assert one["loss"] == pytest.approx(other["loss"], abs=1e-4)
            assert one.get("examples") == other.get("examples")
        assert pickled_files(folder / layout) == []
        for engine in ("torch", "core"):
            texts = [generated(folder / out, engine) for out in ("whole", layout)]
            assert texts[0] == texts[1]


def generated(model: Path, engine: str) -> list[str]:
    return heedful.load(model, engine=engine).generate("the", GenerationOptions(max_tokens=7, temperature=0.0))


def test_pickles_are_found(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "weights.pt")
    (tmp_path / "other").write_bytes(pickle.dumps({"a": 1}))
    (tmp_path / "state.json").write_text("{}")
    assert [file.name for file in pickled_files(tmp_path)] == ["other", "weights.pt"]
