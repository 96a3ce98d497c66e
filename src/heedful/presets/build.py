"""Presets by their names: their settings, and fresh models of them."""

from __future__ import annotations

from typing import Any

from torch import nn

from heedful.config import from_dict, merge, nearest
from heedful.errors import UserError
from heedful.models.families import FAMILIES
from heedful.presets import PRESETS
from heedful.presets.preset import Preset, given_settings
from heedful.settings.families import FAMILY_SETTINGS
from heedful.settings.vision import VisionConfig


def preset(name: str) -> Preset:
    """The preset of that name."""
    if name not in PRESETS:
        raise UserError(f"unknown preset {name!r}: {nearest(name, list(PRESETS))}")
    return PRESETS[name]()


def build(name: str, **settings: Any) -> nn.Module:
    """A fresh model of a preset, with settings of one's own: `build("translation_base", vocabulary_size=37000)`."""
    found = preset(name)
    config = from_dict(FAMILY_SETTINGS[found.family], merge(given_settings(found)["model"], settings))
    if isinstance(config, VisionConfig) and config.num_classes is None:
        raise UserError(f"{name} needs to know how many classes there are: give num_classes")
    return FAMILIES[found.family].build(config)
