"""A model that has learned where things are knows it at another resolution too, by interpolated positions."""

import numpy as np
import torch

from benchmarks.cropped_positions import crop_or_tile
from heedful.models.vision import Vision
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.tasks.image_classification.augmentation import AugmentationConfig
from heedful.tasks.image_classification.data import ImageSet
from heedful.tasks.image_classification.task import ImageTask
from heedful.tasks.task import LearningSettings

DOT = 3


def dots(count: int, height: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images N 1 H W with a bright dot, whose class is the quarter that the dot is in."""
    random = np.random.Generator(np.random.PCG64(seed))
    images = random.integers(0, 60, (count, 1, height, width)).astype(np.uint8)
    rows, columns = random.integers(height - DOT, size=count), random.integers(width - DOT, size=count)
    # The border itself is left out: a dot on it would be in two quarters.
    rows = np.where(abs(rows + DOT / 2 - height / 2) < 2, 0, rows)
    columns = np.where(abs(columns + DOT / 2 - width / 2) < 2, 0, columns)
    for image, row, column in zip(images, rows, columns, strict=True):
        image[0, row : row + DOT, column : column + DOT] = 220
    return images, 2 * (rows > height / 2 - 2) + (columns > width / 2 - 2)


def image_task(model: Vision, images: np.ndarray, classes: np.ndarray) -> ImageTask:
    everything = np.arange(len(images))
    settings = LearningSettings(32 * model.config.length, 0.0, 1)
    augmentation = AugmentationConfig(shift=0.0, flip=False)
    return ImageTask(model, ImageSet(images, classes, everything, everything), augmentation, settings, str)


def test_places_keep_their_meaning_at_another_resolution() -> None:
    torch.manual_seed(1)
    stack = StackConfig(1, "pre", 0.0, AttentionConfig(4), FeedForwardConfig(64, "gelu"), norm_epsilon=1e-6)
    model = Vision(VisionConfig((16, 24), (4, 4), 1, 4, 32, "class_token", stack=stack))
    task = image_task(model, *dots(1600, 16, 24, seed=1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.004)
    for indices in [indices for epoch in range(4) for indices in task.epoch_batches(epoch)]:
        batch = task.collate(indices)
        optimizer.zero_grad()
        (task.loss(task.model, batch)[0] / batch.num_targets).backward()
        optimizer.step()
    model.eval()

    def accuracy(height: int, width: int) -> float:
        return image_task(model, *dots(300, height, width, seed=2)).validate().scores["accuracy"]

    assert accuracy(16, 24) > 0.95
    assert accuracy(32, 36) > 0.95
    table = model.positions.table
    model.positions.table = torch.nn.Parameter(crop_or_tile(table, (8, 9)))
    assert accuracy(32, 36) < 0.6
