"""XLNets; a preset's name is its function's name."""

from __future__ import annotations

from heedful.presets.preset import Preset, Settings, make_preset
from heedful.presets.recipes import budget_recipe


def _xlnet(width: int, layers: int, heads: int, inner: int, dropout: float) -> Settings:
    return {
        "width": width,
        "stack": {
            "num_layers": layers,
            "dropout": dropout,
            "norm_epsilon": 1e-12,
            "attention": {"num_heads": heads, "bias": False},
            "feed_forward": {"inner_width": inner, "activation": "gelu"},
        },
    }


def _recipe(width: int) -> Settings:
    recipe = budget_recipe(width)
    return {**recipe, "label_smoothing": 0.0, "optimizer": {"beta2": 0.98, "epsilon": 1e-8, "weight_decay": 0.01}}


def xlnet_tiny() -> Preset:
    """About a million parameters: a book, a laptop."""
    model = {**_xlnet(128, 4, 4, 512, 0.1), "max_length": 256, "memory_length": 128}
    return make_preset("xlnet", model, _recipe(128))


def _published(width: int, layers: int, heads: int) -> Preset:
    """The published sizes, which learn to predict a sixth of the tokens, without favouring any order."""
    model = {
        **_xlnet(width, layers, heads, 4 * width, 0.1),
        "vocabulary_size": 32_000,
        "max_length": 896,
        "memory_length": 384,
        "orders": {"predicted": 1 / 6, "left_to_right": 0.0},
    }
    return make_preset("xlnet", model, _recipe(width))


def xlnet_base() -> Preset:
    """XLNet-Base, 117 million parameters (Yang et al., 2019)."""
    return _published(768, 12, 12)


def xlnet_large() -> Preset:
    """XLNet-Large, 361 million parameters."""
    return _published(1024, 24, 16)
