import torch
import torch.nn.functional as F

from heedful.layers.neighbourhood import Neighbourhood


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
