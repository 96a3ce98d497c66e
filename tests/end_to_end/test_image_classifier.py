"""From a folder of images to a model that tells what others show, at two resolutions."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from heedful.cli.evaluate import evaluate
from heedful.tasks.image_classification.demo_shapes import SHAPES, draw_shapes

NAMES = list(SHAPES)
KEPT = [NAMES.index(name) for name in ("cross", "ring", "triangle")]
SETTINGS = [
    "model.patch_size=[6, 6]",
    "model.width=48",
    "model.stack={num_layers=2, dropout=0.0, attention={num_heads=4}, feed_forward={inner_width=96}}",
    "training.schedule.learning_rate=0.004",
    "training.batches.tokens_per_step=512",
    "training.saving.validations=2",
    "training.label_smoothing=0.05",
]


def save_shapes(folder: Path, count: int, seed: int, size: int) -> None:
    images, classes = draw_shapes(count, seed, size)
    for number in np.flatnonzero(np.isin(classes, KEPT)):
        place = folder / NAMES[classes[number]]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[number]).save(place / f"{number}.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, run: Callable) -> Path:
    folder = tmp_path_factory.mktemp("shapes")
    save_shapes(folder / "train", 2400, 1, 24)
    save_shapes(folder / "test", 400, 2, 24)
    save_shapes(folder / "large", 400, 3, 30)
    (folder / "train" / "ring" / "broken.png").write_bytes(b"no image")
    sets = [f"--set={setting}" for setting in SETTINGS]
    where = ["--images", folder / "train", "--out", folder / "model"]
    result = run("train", "image-classifier", *where, "--steps", "300", *sets)
    assert b"unreadable 1" in result.stderr
    return folder


def test_it_learns(folder: Path, run: Callable) -> None:
    scores = json.loads(run("evaluate", folder / "model", "--images", folder / "test", "--json").stdout)
    assert scores["accuracy"] > 0.95
    assert scores["macro_f1"] > 0.95
    assert np.sum(scores["confusion"]) == scores["count"] > 150
    assert np.trace(scores["confusion"]) == round(scores["accuracy"] * scores["count"])


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_a_file_name_with_a_line_break_stays_in_its_column(folder: Path, tmp_path: Path, run: Callable) -> None:
    image = tmp_path / "a\tb\nc.png"
    Image.fromarray(draw_shapes(1, 5, 24)[0][0]).save(image)
    (line,) = run("classify", folder / "model", image).stdout.decode().splitlines()
    name, label, _ = line.split("\t")
    assert name == f"{tmp_path / 'a'}\\tb\\nc.png"
    assert label in NAMES
    (line,) = run("classify", folder / "model", image, "--json").stdout.decode().splitlines()
    assert json.loads(line)["file"] == str(image)


def test_it_is_of_use_at_another_resolution(folder: Path) -> None:
    """The patches show smaller parts of the shapes than in training, so that some are missed; chance is a third."""
    options = ["--images", str(folder / "large"), "--resolution", "30"]
    result = CliRunner().invoke(evaluate, [str(folder / "model"), *options], catch_exceptions=False)
    assert float(result.stdout.split()[1]) > 0.8
    assert "triangle" in result.stdout


def test_classify_prints_a_line_for_each_image(folder: Path, run: Callable) -> None:
    files = sorted((folder / "test" / "ring").iterdir())[:3]
    result = run("classify", folder / "model", *files, "--top", "2")
    rows = [line.split("\t") for line in result.stdout.decode().splitlines()]
    assert [row[0] for row in rows] == [str(file) for file in files]
    assert [row[1] for row in rows].count("ring") >= 2
    assert all(len(row) == 5 and float(row[2]) >= float(row[4]) for row in rows)
    (first,) = run("classify", folder / "model", files[0], "--json").stdout.decode().splitlines()
    assert json.loads(first)["file"] == str(files[0])
