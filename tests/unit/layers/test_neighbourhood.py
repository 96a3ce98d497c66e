import torch
import torch.nn.functional as F

from heedful.layers.neighbourhood import GridNeighbourhood, Neighbourhood


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


def test_on_a_grid_it_is_torchs_convolution_too() -> None:
    torch.manual_seed(2)
    layer = GridNeighbourhood(5, 3, 2)
    x_BPD = torch.randn(2, 7 * 4, 5)
    # The inner axis was joined last: the kernel's axes are out, columns, rows, in.
    kernel = layer.projection.weight.view(5, 3, 3, 5).permute(0, 3, 2, 1)
    image_BDHW = x_BPD.view(2, 7, 4, 5).permute(0, 3, 1, 2)
    found_BDHW = F.conv2d(image_BDHW, kernel, layer.projection.bias, padding=1)
    expected = x_BPD + F.gelu(found_BDHW).permute(0, 2, 3, 1).flatten(1, 2)
    torch.testing.assert_close(layer(x_BPD, (7, 4)), expected, atol=1e-6, rtol=0)
