import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.errors import UserError
from heedful.layers.grid_positions import interpolate
from heedful.model_folder import load_model_folder
from heedful.models.vision import Vision
from heedful.tasks.image_classification.augmentation import AugmentationConfig
from heedful.tasks.image_classification.demo_shapes import draw_shapes
from heedful.tasks.image_classification.job import ImageData
from heedful.tasks.starting_model import StartingModel

SETTINGS: dict[str, Any] = {
    "model": {
        "width": 12,
        "stack": {"num_layers": 2, "dropout": 0.2, "attention": {"num_heads": 3}, "feed_forward": {"inner_width": 17}},
    },
    "training": {
        "limit": {"steps": 6},
        "batches": {"tokens_per_step": 400, "tokens_per_batch": 200},
        "machine": {"device": "cpu", "workers": 2, "threads": 1},
        "saving": {"validations": 2, "checkpoint_seconds": 0.0},
    },
}


class Quiet:
    """Keeps what a run says, and breaks it off after a step, as a crash would."""

    def __init__(self, crash_after: int | None = None) -> None:
        self.crash_after = crash_after
        self.texts: list[str] = []
        self.choices: dict[str, str] = {}

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        pass

    def prepared(self, messages) -> None:
        self.texts.extend(messages)

    def chosen(self, choices, resumed_at: int | None) -> None:
        self.choices = {each.name: each.value for each in choices}

    def step(self, row: dict[str, Any], progress: float | None) -> None:
        if row["step"] == self.crash_after:
            raise KeyboardInterrupt

    def validation(self, row, examples) -> None:
        pass

    def message(self, text: str) -> None:
        self.texts.append(text)


def save_idx(path: Path, array: np.ndarray) -> str:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes(), 1))
    return str(path)


@pytest.fixture
def data(tmp_path: Path) -> dict[str, str]:
    images, classes = draw_shapes(101, 1, 19)
    grey = images.mean(3).astype(np.uint8)
    return {
        "idx_images": save_idx(tmp_path / "images.gz", grey),
        "idx_labels": save_idx(tmp_path / "labels.gz", classes),
    }


def train(out: Path, job: ImageData, observer: Quiet | None = None, **model: Any) -> Quiet:
    observer = observer or Quiet()
    settings = {**SETTINGS, "model": {**SETTINGS["model"], **model}}
    heedful.train(heedful.RunConfig(str(out), job, settings=settings), observer)
    return observer


def losses(out: Path) -> list[tuple[str, int, float]]:
    rows = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(row["kind"], row["step"], row["loss"]) for row in rows]


def test_a_run_that_broke_off_goes_on_bit_for_bit(data: dict[str, str], tmp_path: Path) -> None:
    job = ImageData(**data, augmentation=AugmentationConfig(flip=True, erase=0.5))
    train(tmp_path / "whole", job)
    for step in (2, 5):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "broken", job, Quiet(crash_after=step))
    train(tmp_path / "broken", job)
    assert losses(tmp_path / "broken") == losses(tmp_path / "whole")
    for name in ("model.safetensors", "config.json", "run/checkpoints/step-000000006/model.safetensors"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_the_data_settles_size_channels_classes_and_normalisation(data: dict[str, str], tmp_path: Path) -> None:
    said = train(tmp_path / "model", ImageData(**data))
    config = load_model_folder(tmp_path / "model").config
    assert config.labels == tuple("012345")
    assert (config.model.image_size, config.model.channels, config.model.num_classes) == ((19, 19), 1, 6)
    assert 0.2 < config.model.pixels.mean[0] < 0.8
    assert said.choices["images"] == "19x19, grey"
    assert said.choices["preset"] == "vision_tiny"
    assert said.choices["held-out images"] == "20"
    assert "flips" not in said.choices["augmentation"]


def test_starting_from_a_model_at_another_size_and_with_other_classes(data: dict[str, str], tmp_path: Path) -> None:
    train(tmp_path / "first", ImageData(**data))
    first = load_model_folder(tmp_path / "first").network
    said = train(tmp_path / "larger", ImageData(**data, start_from=str(tmp_path / "first")), image_size=[28, 24])
    assert not said.texts
    larger = load_model_folder(tmp_path / "larger").network
    assert larger.config.image_size == (28, 24)
    assert larger.config.pixels == first.config.pixels
    start = Vision(larger.config).eval()
    StartingModel(str(tmp_path / "first"), ("vision",)).copy_to(start)
    pixels = torch.randn(3, 1, 28, 24)
    torch.testing.assert_close(start(pixels), first(pixels))
    # Six steps are few: the interpolated positions and the head must be near to those of the start.
    torch.testing.assert_close(
        larger.positions.table, interpolate(first.positions.table, (7, 6)), rtol=0, atol=6 * 0.0025
    )
    assert (larger.output.weight - first.output.weight).abs().max() < 6 * 0.0025

    images, classes = draw_shapes(53, 2, 19)
    two = {
        "idx_images": save_idx(tmp_path / "other-images.gz", images.mean(3)),
        "idx_labels": save_idx(tmp_path / "other-labels.gz", classes % 2),
    }
    said = train(tmp_path / "other", ImageData(**two, start_from=str(tmp_path / "first")))
    assert said.texts == ["the classifier starts from scratch: the model had 6 classes"]
    assert load_model_folder(tmp_path / "other").network.config.num_classes == 2
    with pytest.raises(UserError, match="width 12, and its weights do not fit 15"):
        train(tmp_path / "wider", ImageData(**data, start_from=str(tmp_path / "first")), width=15)


def test_a_named_preset_settles_the_size_of_images(data: dict[str, str], tmp_path: Path) -> None:
    job = ImageData(**data)
    job.check()
    shapes = {
        (224, 224): {"image_size": [224, 224], "patch_size": [16, 16]},
        (19, 19): {"patch_size": [4, 4]},
        (16, 16): {"patch_size": [1, 1]},
        (30, 20): {"image_size": [30, 20]},
    }
    for number, (size, settings) in enumerate(shapes.items()):
        prepared = job.prepare(tmp_path / str(number), settings, lambda *_: None, None)
        assert prepared.shape.size == size
    with pytest.raises(UserError, match="two numbers"):
        job.prepare(tmp_path / "video", {"image_size": [3, 30, 20]}, lambda *_: None, None)


def test_what_does_not_go_together_is_refused(data: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no data"):
        ImageData().check()
    with pytest.raises(UserError, match="go together"):
        ImageData(idx_images=data["idx_images"]).check()
    with pytest.raises(UserError, match="has 3 axes: it holds no labels"):
        ImageData(idx_images=data["idx_images"], idx_labels=data["idx_images"]).check()
    one = save_idx(tmp_path / "one.gz", np.zeros(101))
    with pytest.raises(UserError, match="only one class"):
        ImageData(idx_images=data["idx_images"], idx_labels=one).check()
    more = {"valid_idx_images": data["idx_images"], "valid_idx_labels": save_idx(tmp_path / "more.gz", np.full(101, 9))}
    with pytest.raises(UserError, match="a class '6' that the training images do not have"):
        ImageData(**data, **more).check()
    fewer = save_idx(tmp_path / "fewer.gz", np.zeros(100))
    with pytest.raises(UserError, match="each image needs its label"):
        ImageData(idx_images=data["idx_images"], idx_labels=fewer).check()
