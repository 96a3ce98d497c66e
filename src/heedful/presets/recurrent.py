"""Recurrent models for translation, to compare Transformers with; a preset's name is its function's name."""

from __future__ import annotations

from heedful.presets.preset import Preset, make_preset
from heedful.presets.recipes import budget_recipe


def recurrent_tiny() -> Preset:
    """LSTM layers with additive attention, with about as many parameters as translation_tiny."""
    return make_preset(
        "recurrent",
        {
            "width": 128,
            "hidden_width": 256,
            "encoder": {"num_layers": 2, "dropout": 0.3},
            "decoder": {"num_layers": 1, "dropout": 0.3},
        },
        budget_recipe(128),
    )
