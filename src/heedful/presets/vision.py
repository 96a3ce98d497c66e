"""Vision Transformers; a preset's name is its function's name, and ends in the size of its patches."""

from __future__ import annotations

from heedful.presets.preset import Preset, Settings, make_preset
from heedful.presets.recipes import budget_recipe


def _stack(layers: int, heads: int, inner: int, dropout: float) -> Settings:
    return {
        "num_layers": layers,
        "norm": "pre",
        "norm_epsilon": 1e-6,
        "dropout": dropout,
        "attention": {"num_heads": heads},
        "feed_forward": {"inner_width": inner, "activation": "gelu"},
    }


def _vision(model: Settings) -> Preset:
    recipe = budget_recipe(model["width"])
    training = {**recipe, "optimizer": {"beta2": 0.98, "epsilon": 1e-8, "weight_decay": 0.05}}
    return make_preset("vision", model, training)


def vision_tiny() -> Preset:
    """About 0.65 million parameters: images of up to 64 pixels, a laptop."""
    return _vision(
        {"patch_size": [4, 4], "width": 96, "convolution": 3, "pooling": "mean", "stack": _stack(6, 3, 288, 0.1)}
    )


def _vit(width: int, layers: int, heads: int, patch: int) -> Preset:
    """As published (Dosovitskiy et al., 2021, Table 1; the two smaller ones by Touvron et al., 2021)."""
    model = {"image_size": [224, 224], "patch_size": [patch, patch], "width": width}
    return _vision({**model, "pooling": "class_token", "stack": _stack(layers, heads, 4 * width, 0.1)})


def vit_tiny_16() -> Preset:
    """ViT-Ti/16, 5.7 million parameters at 1000 classes."""
    return _vit(192, 12, 3, 16)


def vit_tiny_32() -> Preset:
    """ViT-Ti/32, 6.1 million parameters."""
    return _vit(192, 12, 3, 32)


def vit_small_16() -> Preset:
    """ViT-S/16, 22.1 million parameters."""
    return _vit(384, 12, 6, 16)


def vit_small_32() -> Preset:
    """ViT-S/32, 22.9 million parameters."""
    return _vit(384, 12, 6, 32)


def vit_base_16() -> Preset:
    """ViT-B/16, 86.6 million parameters."""
    return _vit(768, 12, 12, 16)


def vit_base_32() -> Preset:
    """ViT-B/32, 88.2 million parameters."""
    return _vit(768, 12, 12, 32)


def vit_large_16() -> Preset:
    """ViT-L/16, 304.3 million parameters."""
    return _vit(1024, 24, 16, 16)


def vit_large_32() -> Preset:
    """ViT-L/32, 306.5 million parameters."""
    return _vit(1024, 24, 16, 32)
