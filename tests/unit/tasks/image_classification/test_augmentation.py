import numpy as np
import torch

from heedful.tasks.image_classification.augmentation import Augmentation, AugmentationConfig, uniform_numbers

PIXELS = torch.arange(3 * 2 * 16 * 24, dtype=torch.int32).view(3, 2, 16, 24)


def test_numbers_depend_on_seed_and_key_alone() -> None:
    whole = uniform_numbers(7, np.arange(1009), 8)
    np.testing.assert_array_equal(uniform_numbers(7, np.array([500, 3]), 8), whole[[500, 3]])
    assert not (uniform_numbers(8, np.arange(1009), 8) == whole).any()
    assert len(np.unique(whole)) == whole.size
    assert whole.min() >= 0 and whole.max() < 1
    counts, _ = np.histogram(whole, 10)
    assert abs(counts / whole.size - 0.1).max() < 0.01
    assert abs(np.corrcoef(whole.T) - np.eye(8)).max() < 0.15


def draws(*numbers: float) -> torch.Tensor:
    return torch.tensor([list(numbers) + [0.0] * (8 - len(numbers))] * 3)


def test_shifts_repeat_the_edge() -> None:
    augmentation = Augmentation(AugmentationConfig(shift=0.125, flip=False), 1, 2)
    up_left = augmentation.move(PIXELS, draws(0.999, 0.999))  # 2 rows and 3 columns
    assert torch.equal(up_left[:, :, :-2, :-3], PIXELS[:, :, 2:, 3:])
    assert torch.equal(up_left[:, :, -1, :-3], PIXELS[:, :, -1, 3:])
    down = augmentation.move(PIXELS, draws(0.0, 0.5))
    assert torch.equal(down[:, :, 2:], PIXELS[:, :, :-2])
    assert torch.equal(down[:, :, 0], PIXELS[:, :, 0])


def test_half_of_the_images_are_flipped() -> None:
    augmentation = Augmentation(AugmentationConfig(shift=0.0, flip=True), 1, 1)
    assert torch.equal(augmentation.move(PIXELS, draws(0.5, 0.5, 0.4)), PIXELS.flip(-1))
    assert torch.equal(augmentation.move(PIXELS, draws(0.5, 0.5, 0.6)), PIXELS)
    assert AugmentationConfig().flips(3) and not AugmentationConfig().flips(1)


def test_all_frames_of_a_video_move_alike() -> None:
    video = torch.stack([PIXELS, PIXELS + 5000], 2)
    augmentation = Augmentation(AugmentationConfig(flip=True), 1, 2)
    numbers = augmentation.draw(np.array([3, 5, 11]))
    moved = augmentation.move(video, numbers)
    assert torch.equal(moved[:, :, 0], augmentation.move(PIXELS, numbers))
    assert torch.equal(moved[:, :, 1], moved[:, :, 0] + 5000)


def test_erasing_takes_out_one_rectangle() -> None:
    ones = torch.ones(1009, 1, 16, 24)
    augmentation = Augmentation(AugmentationConfig(erase=0.3), 1, 1)
    erased = augmentation.erase(ones, augmentation.draw(np.arange(1009))) == 0
    hit = erased.flatten(1).any(1)
    assert 0.25 < hit.float().mean() < 0.35
    rows, columns = erased[hit, 0].any(2).sum(1), erased[hit, 0].any(1).sum(1)
    assert torch.equal(erased[hit].flatten(1).sum(1), rows * columns)
    assert rows.min() >= 3 and rows.max() <= 8 and columns.min() >= 4 and columns.max() <= 12
