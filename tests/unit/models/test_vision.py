from dataclasses import replace

import pytest
import torch

from heedful.config import from_dict, to_dict
from heedful.errors import UserError
from heedful.models.parameter_count import counted
from heedful.models.vision import Vision, normalise
from heedful.presets import PRESETS
from heedful.settings.attention import AttentionConfig
from heedful.settings.feed_forward import FeedForwardConfig
from heedful.settings.stack import StackConfig
from heedful.settings.vision import PixelConfig, VisionConfig

STACK = StackConfig(
    num_layers=2,
    norm="pre",
    dropout=0.0,
    attention=AttentionConfig(num_heads=3),
    feed_forward=FeedForwardConfig(inner_width=29, activation="gelu"),
    norm_epsilon=1e-12,
)


def model(**settings) -> Vision:
    torch.manual_seed(1)
    base = VisionConfig((10, 21), (5, 7), 2, 13, 12, stack=STACK)
    return Vision(replace(base, **settings)).eval()


@pytest.mark.parametrize(
    ("preset", "count"),
    [
        ("vit_tiny_16", 5_717_416),
        ("vit_small_16", 22_050_664),
        ("vit_base_16", 86_567_656),
        ("vit_base_32", 88_224_232),
        ("vit_large_16", 304_326_632),
        ("vit_large_32", 306_535_400),
    ],
)
def test_parameter_counts_are_the_published_ones(preset: str, count: int) -> None:
    config = PRESETS[preset]().model
    with torch.device("meta"):
        assert counted(Vision(replace(config, num_classes=1000))) == count


@pytest.mark.parametrize("pooling", ["class_token", "mean"])
def test_images_of_any_size_go_through(pooling: str) -> None:
    network = model(pooling=pooling)
    for size in ((10, 21), (15, 21), (5, 35), (11, 22), (1, 1)):
        assert network(torch.randn(3, 2, *size)).shape == (3, 13)
    assert network.config.length == 6 + (pooling == "class_token")
    assert network.tokens(torch.randn(3, 2, 15, 21)).shape == (3, 9 + (pooling == "class_token"), 12)


def test_without_classes_it_gives_what_the_head_would_see() -> None:
    network = model(num_classes=None)
    images = torch.randn(3, 2, 10, 21)
    assert torch.equal(network(images), network.hidden(images))


def test_the_order_of_patches_matters_only_through_their_positions() -> None:
    network = model(pooling="mean")
    images = torch.randn(3, 2, 10, 21)
    moved = images.roll(7, -1)
    with torch.inference_mode():
        assert not torch.allclose(network(images), network(moved), atol=1e-3)
        network.positions.table.zero_()
        torch.testing.assert_close(network(images), network(moved))


def test_videos() -> None:
    network = model(image_size=(4, 8, 12), patch_size=(2, 4, 4), channels=3)
    assert network.config.grid == (2, 2, 3)
    assert network(torch.randn(5, 3, 4, 8, 12)).shape == (5, 13)
    assert network(torch.randn(5, 3, 7, 8, 16)).shape == (5, 13)


def test_pixels_are_normalised_by_channel() -> None:
    pixels = torch.randint(0, 256, (3, 2, 5, 7), dtype=torch.uint8)
    result = normalise(pixels, PixelConfig((0.2, 0.5), (0.1, 0.4)))
    torch.testing.assert_close(result[:, 1], (pixels[:, 1] / 255 - 0.5) / 0.4)
    torch.testing.assert_close(normalise(pixels, PixelConfig((0.2,), (0.1,))), (pixels / 255 - 0.2) / 0.1)


def test_settings_survive_being_saved_and_are_checked() -> None:
    config = model().config
    assert from_dict(VisionConfig, to_dict(config)) == config
    with pytest.raises(UserError, match="a number for each axis"):
        VisionConfig((32, 32), (4,))
    with pytest.raises(UserError, match="patch_size is 0"):
        VisionConfig((32, 32), (4, 0))


def test_the_estimate_covers_what_a_training_step_really_takes() -> None:
    network = model(image_size=(24, 20), patch_size=(4, 4), stack=replace(STACK, dropout=0.1)).train()
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if not isinstance(tensor, torch.nn.Parameter):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        network(torch.randn(7, 2, 24, 20))
    assert sum(kept.values()) <= network.config.activation_bytes() * 7 * network.config.length
