"""The demo for images: a model trained in about a minute on shapes that are drawn on the spot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from heedful.files import write_file
from heedful.tasks.classification import Classification
from heedful.tasks.demo_folder import fresh_folder
from heedful.tasks.image_classification.demo_shapes import SHAPES, draw_shapes
from heedful.tasks.image_classification.job import ImageData
from heedful.tasks.image_classification.pipeline import ImageClassifier
from heedful.tasks.loading import load
from heedful.training.config import seconds
from heedful.training.run import RunObserver, train
from heedful.training.run_config import RunConfig

WHAT = "images of simple shapes, drawn on the spot"
TRAINING_IMAGES = 5000
UNSEEN_IMAGES = 300
SIZE = 24
LARGER_SIZE = 30
SHOWN_EXAMPLES = 8
SHADES = " .:-=+*#%@"
SETTINGS: dict[str, Any] = {
    "model": {
        "patch_size": [6, 6],
        "width": 64,
        "stack": {"num_layers": 4, "dropout": 0.0, "attention": {"num_heads": 4}, "feed_forward": {"inner_width": 192}},
    },
    "training": {
        "batches": {"tokens_per_step": 512},
        "schedule": {"learning_rate": 0.002},
        "saving": {"validations": 4},
        "label_smoothing": 0.05,
    },
}


@dataclass(frozen=True)
class ShapeExample:
    """An unseen image, what it shows, and what the model says."""

    image: NDArray[np.uint8]
    shape: str
    result: Classification


@dataclass(frozen=True)
class VisionDemoResult:
    """What the demo shows at its end."""

    examples: list[ShapeExample]
    accuracy: float
    larger_accuracy: float
    page: Path

    @property
    def learned(self) -> bool:
        """Whether the training was long enough for most answers to be right."""
        return self.accuracy > 0.5


def run_demo(out: Path, budget: str, seed: int, observer: RunObserver) -> VisionDemoResult:
    """Draw shapes, train on most of them, and classify the others, and larger ones."""
    seconds(budget)  # an error must be noticed before the last demo is removed
    folder = fresh_folder(out)
    _save(folder, TRAINING_IMAGES, seed)
    settings = {**SETTINGS, "training": {**SETTINGS["training"], "limit": {"budget": budget}}}
    result = train(RunConfig(str(out), ImageData(images=str(folder)), "vision_tiny", settings), observer)
    if not result.finished:
        raise KeyboardInterrupt
    classifier = load(out)
    assert isinstance(classifier, ImageClassifier)
    examples = _classify(classifier, seed + 1, SIZE)
    larger = _classify(classifier, seed + 2, LARGER_SIZE)
    page = out / "attention.html"
    write_file(page, classifier.attention(examples[0].image).html())
    return VisionDemoResult(examples, _accuracy(examples), _accuracy(larger), page)


def _save(folder: Path, count: int, seed: int) -> None:
    names = list(SHAPES)
    for name in names:
        (folder / name).mkdir(parents=True)
    for number, (image, shape) in enumerate(zip(*draw_shapes(count, seed, SIZE), strict=True)):
        Image.fromarray(image).save(folder / names[shape] / f"{number}.png", compress_level=1)


def _classify(classifier: ImageClassifier, seed: int, size: int) -> list[ShapeExample]:
    images, shapes = draw_shapes(UNSEEN_IMAGES, seed, size)
    names, results = list(SHAPES), classifier.classify(list(images), size)
    return [
        ShapeExample(image, names[shape], result) for image, shape, result in zip(images, shapes, results, strict=True)
    ]


def _accuracy(examples: list[ShapeExample]) -> float:
    return sum(each.result.label == each.shape for each in examples) / len(examples)


def show(console: Console, result: VisionDemoResult, folder: str) -> None:
    """Some unseen examples as characters, the scores, and what to try next."""
    console.print("images that were not in the training data:", highlight=False)
    console.print(Columns([_panel(each) for each in result.examples[:SHOWN_EXAMPLES]]))
    count = len(result.examples)
    console.print(
        f"right: {result.accuracy:.1%} of {count} unseen images of {SIZE}x{SIZE} pixels, and "
        f"{result.larger_accuracy:.1%} of {count} images of {LARGER_SIZE}x{LARGER_SIZE}, a size that it never saw "
        "(its positions are interpolated)\n",
        highlight=False,
    )
    console.print(Text(f"what it looks at in the first of them: open {result.page} in a browser\n"), soft_wrap=True)
    image = f"{folder}/run/demo/star/*.png"
    console.print(
        Text(f"""next:
  heedful classify {folder} {image} --top 3
  heedful evaluate {folder} --images {folder}/run/demo --resolution 36
  heedful info {folder}
  heedful train image-classifier --images your-folder --out my-vit"""),
        soft_wrap=True,
    )


def _panel(example: ShapeExample) -> Panel:
    """Every second row of an image, its shades as characters, with its label below."""
    grey = example.image.mean(2)
    scaled = (grey - grey.min()) / max(1.0, float(np.ptp(grey))) * (len(SHADES) - 1)
    rows = ["".join(SHADES[round(float(value))] for value in row) for row in scaled[::2]]
    right = example.result.label == example.shape
    label = f"{example.result.label} {example.result.probability:.0%}" + ("" if right else f", not {example.shape}")
    return Panel(
        Text("\n".join(rows)), subtitle=Text(label, style="green" if right else "red"), width=example.image.shape[1] + 4
    )
