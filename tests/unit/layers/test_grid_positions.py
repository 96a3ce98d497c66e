import pytest
import torch
from torch.nn import functional

from heedful.layers.grid_positions import GridPositions, interpolate


def table(*grid: int) -> torch.Tensor:
    return torch.randn(*grid, 11, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("grid", [(5,), (5, 7), (2, 3, 5)])
def test_the_same_grid_gives_the_same_bits(grid: tuple[int, ...]) -> None:
    positions = GridPositions(grid, 11)
    assert torch.equal(positions(grid), positions.table.flatten(0, -2))


@pytest.mark.parametrize("grid", [(5, 7), (9, 7), (5, 3), (3, 13), (11, 2), (1, 1)])
def test_two_axes_are_interpolated_bicubically(grid: tuple[int, int]) -> None:
    given = table(5, 7)
    expected = functional.interpolate(given.permute(2, 0, 1)[None], size=grid, mode="bicubic", align_corners=False)
    torch.testing.assert_close(interpolate(given, grid), expected[0].permute(1, 2, 0), rtol=1e-5, atol=1e-5)


def test_frames_are_interpolated_too() -> None:
    given = table(3, 5, 7)
    spread = interpolate(given, (7, 5, 7))
    for row, column in ((0, 0), (4, 6), (2, 3)):
        torch.testing.assert_close(spread[:, row, column], interpolate(given[:, row, column], (7,)))


def test_a_place_keeps_its_meaning_on_a_finer_grid() -> None:
    rows, columns = torch.meshgrid(torch.arange(16) + 0.5, torch.arange(12) + 0.5, indexing="ij")
    given = torch.stack([rows / 16, columns / 12], -1)
    doubled = interpolate(given, (32, 24))
    rows, columns = torch.meshgrid(torch.arange(32) + 0.5, torch.arange(24) + 0.5, indexing="ij")
    inner = (slice(4, -4), slice(4, -4))
    # The usual cubic curve follows a straight line to an eighth of a step.
    expected = torch.stack([rows / 32, columns / 24], -1)
    torch.testing.assert_close(doubled[inner], expected[inner], rtol=0, atol=0.13 / 24)
