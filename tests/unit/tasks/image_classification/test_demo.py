from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from heedful.errors import UserError
from heedful.tasks.classification import Classification
from heedful.tasks.image_classification import demo as demo_vision
from heedful.tasks.image_classification.demo_shapes import SHAPES, draw_shapes
from heedful.tasks.image_classification.pipeline import ImageClassifier
from heedful.training.display import RunDisplay


def classify_some_right(model: ImageClassifier, images: np.ndarray, resolution: int) -> list[Classification]:
    """Answers to the images of a demo with the seed 1, of which the first few are right."""
    (seed, right) = {24: (2, 17), 30: (3, 5)}[resolution]
    drawn, shapes = draw_shapes(23, seed, resolution)
    assert np.array_equal(images, drawn)
    names = list(SHAPES)
    answers = [names[(shape + (number >= right)) % len(names)] for number, shape in enumerate(shapes)]
    return [Classification(answer, 1.0, ((answer, 1.0),)) for answer in answers]


def test_the_demo_trains_and_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_vision, "TRAINING_IMAGES", 200)
    monkeypatch.setattr(demo_vision, "UNSEEN_IMAGES", 23)
    display = RunDisplay(Console(file=StringIO()))
    result = demo_vision.run_demo(tmp_path / "demo", "0.5s", 1, display)
    assert len(result.examples) == 23 and {each.result.label for each in result.examples} <= set(SHAPES)
    # The second one removes what the first one left; its model gets 17 images right, and 5 of the larger ones.
    monkeypatch.setattr(ImageClassifier, "classify", classify_some_right)
    result = demo_vision.run_demo(tmp_path / "demo", "0.5s", 1, display)
    assert (result.accuracy, result.larger_accuracy) == (17 / 23, 5 / 23)
    text = StringIO()
    demo_vision.show(Console(file=text, width=120), result, "demo")
    shown = " ".join(text.getvalue().split())
    assert "right: 73.9% of 23 unseen images of 24x24 pixels, and 21.7% of 23 images of 30x30" in shown
    assert "heedful classify demo" in text.getvalue()
    assert f"open {result.page}" in text.getvalue().replace("\n", "")
    assert "data:image/png" in result.page.read_text()
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="not of an earlier demo"):
        demo_vision.run_demo(tmp_path / "other", "1s", 1, display)
