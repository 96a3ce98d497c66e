"""Damaged prepared data is found at the start, said in one line, made anew, and the run ends as it would have."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.slow

STACK = "num_layers=1, dropout=0.1, attention={num_heads=2}, feed_forward={inner_width=16}"
SETTINGS = [
    "--set=training.batches={tokens_per_step=320, tokens_per_batch=160}",
    "--set=training.saving={validations=1}",
    "--set=training.machine={workers=1, threads=1}",
    "--set=model.width=16",
    "--steps=3",
]
SMALL = f"--set=model.stack={{{STACK}}}"
JOBS = {
    "pairs": ["translation", "--tsv", "pairs.tsv", "--family", "recurrent", "--set=model.hidden_width=16"],
    "text": ["language-model", "--text", "lines.txt", SMALL],
    "labels": ["classifier", "--data", "labels.tsv", SMALL],
    "images": ["image-classifier", "--images", "images", SMALL],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, make_sentences) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    lines = make_sentences(200, seed=7)
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    (folder / "pairs.tsv").write_text("".join(f"{line}\t{line.upper()}\n" for line in lines))
    (folder / "labels.tsv").write_text("".join(f"{len(line.split()) % 3}\t{line}\n" for line in lines))
    random = np.random.default_rng(1)
    for label in ("dark", "light"):
        (folder / "images" / label).mkdir(parents=True)
        for number in range(20):
            pixels = random.integers(0, 128, (8, 8, 3), np.uint8) + (128 if label == "light" else 0)
            Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / label / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def command(folder: Path) -> Callable[[str, str], list[str]]:
    def build(kind: str, out: str) -> list[str]:
        arguments = [str(folder / each) if (folder / each).exists() else each for each in JOBS[kind]]
        return ["train", *arguments, *SETTINGS, "--out", str(folder / out)]

    return build


@pytest.fixture(scope="module")
def whole(folder: Path, command, run) -> Callable[[str], Path]:
    """The folder of a run that nothing happened to."""

    def train(kind: str) -> Path:
        out = folder / f"{kind}-whole"
        if not out.exists():
            run(*command(kind, out.name))
        return out

    return train


def cut_to_a_tenth(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 10])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def bit_flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGES = [
    ("pairs", "train/target-tokens.bin", cut_to_a_tenth),
    ("text", "train.bin", emptied),
    ("text", "meta.json", emptied),
    ("labels", "train/labels.bin", bit_flipped),
    ("images", "checksums.json", Path.unlink),  # as an older version left the data
]


@pytest.mark.parametrize(("kind", "name", "damage"), DAMAGES, ids=[f"{k}-{n}-{d.__name__}" for k, n, d in DAMAGES])
def test_damage_changes_nothing_but_a_line(
    kind: str, name: str, damage: Callable[[Path], None], folder: Path, command, whole, run
) -> None:
    untouched, out = whole(kind), folder / f"{kind}-{name.replace('/', '-')}-{damage.__name__}"
    shutil.copytree(untouched / "run", out / "run", ignore=shutil.ignore_patterns("checkpoints", "*.jsonl", "lock"))
    shutil.copy(untouched / "run" / "data-report.jsonl", out / "run")  # what a run that was killed at its start leaves
    damage(out / "run" / "prepared" / name)
    said = [line for line in run(*command(kind, out.name)).stderr.decode().splitlines() if "is damaged" in line]
    assert len(said) == 1
    assert name in said[0]
    assert losses(out) == losses(untouched)
    assert (out / "model.safetensors").read_bytes() == (untouched / "model.safetensors").read_bytes()


def losses(out: Path) -> list[tuple[str, int, float]]:
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(row["kind"], row["step"], row["loss"]) for row in rows]
