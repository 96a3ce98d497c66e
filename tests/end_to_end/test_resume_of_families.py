"""Every family: killed with SIGKILL and started again, a run is the run that was never killed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow

STEPS = 10
STACK = "num_layers=2, dropout=0.1, attention={num_heads=2}, feed_forward={inner_width=48}"
SMALL = f"--set=model.stack={{{STACK}}}"
XLNET = ["--family", "xlnet", "--set=model.memory_length=16"]
JOBS = {
    "decoder_only": ["language-model", "--text", "lines.txt", SMALL],
    "xlnet": ["language-model", "--text", "lines.txt", SMALL, *XLNET],
    "recurrent": ["translation", "--tsv", "pairs.tsv", "--family", "recurrent", "--set=model.hidden_width=48"],
    "masked": ["masked-language-model", "--text", "lines.txt", SMALL],
    "classifier": ["classifier", "--data", "labels.tsv", SMALL],
    "tagger": ["tagger", "--data", "tags.tsv", SMALL],
    "vision": ["image-classifier", "--images", "images", SMALL],
}
SETTINGS = [
    "--set=training.batches={tokens_per_step=640, tokens_per_batch=320}",
    "--set=training.saving={validations=2, checkpoint_seconds=0.0}",
    "--set=training.machine={workers=2, threads=1}",
    "--set=model.width=32",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_sentences) -> Path:
    """Some data for every job."""
    folder = tmp_path_factory.mktemp("families")
    lines = make_sentences(300, seed=7)
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    (folder / "pairs.tsv").write_text("".join(f"{line}\t{line.upper()}\n" for line in lines))
    (folder / "labels.tsv").write_text("".join(f"{len(line.split()) % 3}\t{line}\n" for line in lines))
    words = ("".join(f"{word}\t{len(word)}\n" for word in line.split()) for line in lines)
    (folder / "tags.tsv").write_text("\n".join(words))
    random = np.random.default_rng(1)
    for label in ("dark", "light"):
        (folder / "images" / label).mkdir(parents=True)
        for number in range(60):
            pixels = random.integers(0, 128, (12, 12, 3), np.uint8) + (128 if label == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / label / f"{number}.png")
    return folder


@pytest.mark.parametrize("family", JOBS)
def test_killed_and_resumed_is_bit_for_bit_uninterrupted(family: str, folder: Path, run: Callable) -> None:
    arguments = [str(folder / each) if (folder / each).exists() else each for each in JOBS[family]]

    def command(out: str) -> list[str]:
        return ["train", *arguments, *SETTINGS, "--steps", str(STEPS), "--out", str(folder / out)]

    whole, broken = folder / f"{family}-whole", folder / f"{family}-broken"
    run(*command(whole.name))
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", *command(broken.name)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    metrics = broken / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count('"train"') >= 4):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.001)
    process.kill()
    process.wait()
    assert b"continuing after step" in run(*command(broken.name)).stderr
    assert losses(broken) == losses(whole)
    for name in ("model.safetensors", "config.json", f"run/checkpoints/step-{STEPS:09d}/model.safetensors"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name


def losses(out: Path) -> list[tuple[str, int, float]]:
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(row["kind"], row["step"], row["loss"]) for row in rows]
