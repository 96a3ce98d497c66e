"""Encoder-decoders for translation; a preset's name is its function's name."""

from __future__ import annotations

from heedful.presets.preset import Preset, Settings, make_preset
from heedful.presets.recipes import budget_recipe, paper_recipe


def _translation(width: int, layers: int, heads: int, inner: int, norm: str, dropout: float) -> Settings:
    stack = {
        "num_layers": layers,
        "norm": norm,
        "dropout": dropout,
        "attention": {"num_heads": heads},
        "feed_forward": {"inner_width": inner},
    }
    return {"width": width, "encoder": stack, "decoder": stack}


def translation_tiny() -> Preset:
    """About 2 million parameters: the demo, small corpora, a laptop."""
    return make_preset("encoder_decoder", _translation(128, 4, 4, 256, "pre", 0.2), budget_recipe(128))


def translation_small() -> Preset:
    """About 8 million parameters: some hundred thousand sentence pairs on a CPU."""
    return make_preset("encoder_decoder", _translation(256, 4, 4, 1024, "pre", 0.2), budget_recipe(256))


def translation_base() -> Preset:
    """The paper's base model and recipe (Table 3, 5.3)."""
    return make_preset("encoder_decoder", _translation(512, 6, 8, 2048, "post", 0.1), paper_recipe(5))


def translation_big() -> Preset:
    """The paper's big model and recipe (Table 3; dropout 0.3 as for English-German)."""
    return make_preset("encoder_decoder", _translation(1024, 6, 16, 4096, "post", 0.3), paper_recipe(20))
