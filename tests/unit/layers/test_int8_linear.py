import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heedful.layers.int8_linear import MANY_ROWS, Int8Linear, with_int8_weights


def layer(inputs: int = 131, outputs: int = 67, bias: bool = True) -> nn.Linear:
    torch.manual_seed(5)
    return nn.Linear(inputs, outputs, bias)


def rows(count: int, inputs: int = 131) -> Tensor:
    # Rows of very different sizes: one scale for all of them would leave nothing of the small ones.
    torch.manual_seed(6)
    return torch.randn(count, inputs) * 10.0 ** torch.arange(-3, count - 3)[:, None].clamp(max=3)


@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_close_to_the_layer_it_is_made_from(bias: bool) -> None:
    plain = layer(bias=bias)
    found, expected = Int8Linear(plain)(rows(11)), plain(rows(11))
    error = (found - expected).norm(dim=1) / expected.norm(dim=1)
    assert float(error.max()) < 0.02


@pytest.mark.parametrize("count", [7, 139])
@torch.no_grad()
def test_weights_are_those_it_computes_with(count: int) -> None:
    rounded = Int8Linear(layer())
    # Whole numbers from -127 to 127 are not rounded.
    x_RK = torch.randint(-127, 128, (count, 131)).float()
    x_RK[:, 0] = 127
    torch.testing.assert_close(rounded(x_RK), F.linear(x_RK, rounded.weight, rounded.bias), rtol=1e-4, atol=1e-4)
    assert len(rounded.weight.div(rounded.scales_N[:, None]).round().unique()) <= 127


@pytest.mark.parametrize("inputs", [131, 4099])
@torch.no_grad()
def test_a_row_does_not_depend_on_the_others(inputs: int) -> None:
    rounded, x_RK = Int8Linear(layer(inputs)), rows(151, inputs)
    together = rounded(x_RK)
    # With few rows another kernel computes.
    assert len(x_RK) > MANY_ROWS
    for first, count in ((0, 1), (3, 2), (5, 3), (8, 4), (12, 23), (24, 127), (23, 128)):
        assert torch.equal(rounded(x_RK[first : first + count]), together[first : first + count])
    assert torch.equal(rounded(x_RK.view(1, 151, inputs))[0], together)


@torch.no_grad()
def test_zeros_stay_zeros() -> None:
    plain = layer()
    plain.weight[3] = 0.0
    rounded = Int8Linear(plain)
    assert torch.equal(rounded(torch.zeros(5, 131)), plain.bias.expand(5, -1))
    assert torch.equal(rounded(rows(5))[:, 3], plain.bias[3].expand(5))


def test_only_layers_that_gain_are_replaced() -> None:
    model = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 64), nn.Sequential(nn.Linear(64, 8192)))
    with_int8_weights(model)
    kinds = [type(module) for module in model.modules() if not isinstance(module, nn.Sequential)]
    assert kinds == [Int8Linear, nn.Linear, nn.Linear]
