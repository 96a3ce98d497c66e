import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.layers.convolutions import GridNeighbourhood, Neighbourhood


def test_it_is_torchs_convolution_over_the_real_tokens() -> None:
    torch.manual_seed(1)
    layer = Neighbourhood(7, 5)
    x_BTD = torch.randn(3, 11, 7)
    kernel = layer.projection.weight.view(7, 5, 7).transpose(1, 2)
    for row, length in enumerate([11, 2, 5]):
        real_TD = x_BTD[row, :length]
        phrases = F.conv1d(real_TD.T[None], kernel, layer.projection.bias, padding=2)[0].T
        found = layer(x_BTD, torch.tensor([11, 2, 5]))[row, :length]
        torch.testing.assert_close(found, real_TD + F.gelu(phrases), atol=1e-6, rtol=0)


def torchs_convolution(layer: GridNeighbourhood, x_BPD: Tensor, grid: tuple[int, int], dilation: int) -> Tensor:
    # The inner axis was joined last: the kernel's axes are out, columns, rows, in.
    kernel = layer.projection.weight.view(5, 3, 3, 5).permute(0, 3, 2, 1)
    image_BDHW = x_BPD.view(2, *grid, 5).permute(0, 3, 1, 2)
    found_BDHW = F.conv2d(image_BDHW, kernel, layer.projection.bias, padding=dilation, dilation=dilation)
    return x_BPD + F.gelu(found_BDHW).permute(0, 2, 3, 1).flatten(1, 2)


@pytest.mark.parametrize("finer", [1, 2, 3])
def test_on_a_grid_it_is_torchs_convolution_too(finer: int) -> None:
    torch.manual_seed(2)
    layer, grid = GridNeighbourhood(5, 3, 2), (7, 4)
    x_BPD = torch.randn(2, math.prod(grid), 5)
    found, expected = layer(x_BPD, grid, (finer, finer)), torchs_convolution(layer, x_BPD, grid, finer)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("step", [0.7, 1.4, 1.9])
def test_neighbours_between_two_tokens_are_interpolated(step: float) -> None:
    torch.manual_seed(3)
    layer, slope_D = GridNeighbourhood(2, 3, 1), torch.randn(2)
    places_P1 = torch.arange(11.0)[:, None]  # what is linear along the axis is interpolated without a fault
    around = torch.cat([(places_P1 + far) * slope_D for far in (-step, 0, step)], -1)
    expected = places_P1 * slope_D + F.gelu(layer.projection(around))
    found = layer((places_P1 * slope_D)[None], (11,), (step,))[0]
    torch.testing.assert_close(found[2:-2], expected[2:-2], atol=1e-5, rtol=0)
