"""A model of videos must learn which way a square moves, which no single frame shows."""

import numpy as np
import torch

from heedful.models.vision import Vision
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import VisionConfig
from heedful.tasks.image_classification.augmentation import AugmentationConfig
from heedful.tasks.image_classification.data import ImageSet
from heedful.tasks.image_classification.task import ImageTask
from heedful.tasks.task import LearningSettings

FRAMES, SIZE, SQUARE = 5, 8, 3
DIRECTIONS = [(0, -1), (0, 1), (-1, 0), (1, 0)]


def clips(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Videos N 1 F H W of a square that moves a pixel a frame around the border, on a ground of noise."""
    random = np.random.Generator(np.random.PCG64(seed))
    classes = random.integers(len(DIRECTIONS), size=count)
    videos = random.integers(0, 60, (count, 1, FRAMES, SIZE, SIZE)).astype(np.uint8)
    starts = random.integers(SIZE, size=(count, 2))
    for video, number, start in zip(videos, classes, starts, strict=True):
        for frame in range(FRAMES):
            row, column = start + frame * np.array(DIRECTIONS[number])
            rows, columns = (row + np.arange(SQUARE)) % SIZE, (column + np.arange(SQUARE)) % SIZE
            video[0, frame, rows[:, None], columns] = 200
    return videos, classes


def test_the_direction_of_a_movement_is_learned() -> None:
    torch.manual_seed(1)
    videos, classes = clips(2300, seed=1)
    stack = StackConfig(2, "pre", 0.0, AttentionConfig(4), FeedForwardConfig(96, "gelu"), norm_epsilon=1e-6)
    model = Vision(VisionConfig((FRAMES, SIZE, SIZE), (2, 4, 4), 1, 4, 48, "mean", stack=stack))
    data = ImageSet(videos, classes, np.arange(2000), np.arange(2000, 2300))
    steps = 250
    settings = LearningSettings(32 * model.config.length, 0.05, 1)
    task = ImageTask(model, data, AugmentationConfig(shift=0.0, flip=False), settings, str)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.004)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.004, total_steps=steps)
    batches = [indices for epoch in range(5) for indices in task.epoch_batches(epoch)]
    for indices in batches[:steps]:
        batch = task.collate(indices)
        optimizer.zero_grad()
        (task.loss(task.model, batch)[0] / batch.num_targets).backward()
        optimizer.step()
        schedule.step()
    model.eval()
    assert task.validate().scores["accuracy"] > 0.95
