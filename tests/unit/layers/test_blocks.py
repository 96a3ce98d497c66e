import pytest
import torch
import torch.nn.functional as F

from heedful.layers.blocks import PostNorm, PreNorm, SelfBlock
from heedful.layers.feed_forward import FeedForward
from heedful.layers.positions import PositionScheme
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.position_scheme import PositionSizes
from heedful.settings.stack import StackConfig


def test_post_norm_is_the_formula_of_the_paper() -> None:
    x = torch.randn(3, 5, 7)
    expected = F.layer_norm(x + x.square(), (7,))
    torch.testing.assert_close(PostNorm(7, StackConfig(dropout=0.3)).eval()(x, torch.square), expected)


def test_pre_norm_leaves_the_residual_as_it_is() -> None:
    x = torch.randn(3, 5, 7)
    expected = x + F.layer_norm(x, (7,)).square()
    torch.testing.assert_close(PreNorm(7, StackConfig(dropout=0.3)).eval()(x, torch.square), expected)


@pytest.mark.parametrize(("name", "activation"), [("relu", F.relu), ("gelu", F.gelu)])
def test_feed_forward_is_equation_2(name, activation) -> None:
    layer = FeedForward(7, FeedForwardConfig(inner_width=11, activation=name))
    x = torch.randn(3, 5, 7)
    inner = activation(x @ layer.inner_projection.weight.T + layer.inner_projection.bias)
    torch.testing.assert_close(layer(x), inner @ layer.output_projection.weight.T + layer.output_projection.bias)


def test_the_inner_width_is_four_times_the_width_by_default() -> None:
    assert FeedForward(7, FeedForwardConfig()).inner_projection.out_features == 28


def test_activation_dropout_is_a_setting_of_its_own() -> None:
    x = torch.randn(3, 5, 7)
    layer = FeedForward(7, FeedForwardConfig(dropout=0.5)).train()
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


def test_sub_layer_dropout_acts_on_each_sub_layer() -> None:
    config = StackConfig(num_layers=1, dropout=0.5, attention=AttentionConfig(num_heads=1))
    block = SelfBlock(8, config, PositionScheme(PositionSizes(8, 8, 5))).train()
    x = torch.randn(2, 5, 8)
    assert not torch.equal(block(x), block(x))
