"""Presets by name: their settings, and new models from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from heedful.config import from_dict, merge, nearest
from heedful.errors import UserError
from heedful.models.families import FAMILIES
from heedful.models.memory_plan import free_memory
from heedful.models.parameter_count import counted
from heedful.presets import PRESETS
from heedful.presets.preset import Preset, given_settings
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.families import FAMILY_SETTINGS
from heedful.settings.vision import VisionConfig


def preset(name: str) -> Preset:
    """The preset with that name."""
    if name not in PRESETS:
        raise UserError(f"unknown preset {name!r}: {nearest(name, list(PRESETS))}")
    return PRESETS[name]()


def build(name: str, **settings: Any) -> nn.Module:
    """A new model from a preset, with settings of your own: `build("translation_base", vocabulary_size=37000)`.

    An encoder hides tokens in training (`token_dropout`) only if `special_tokens` names the mask token of its
    tokenizer: `build("encoder_tiny", vocabulary_size=8000, special_tokens={"mask": 3})`.
    """
    found = preset(name)
    config = from_dict(FAMILY_SETTINGS[found.family], merge(given_settings(found)["model"], settings))
    if isinstance(config, EncoderOnlyConfig):
        _check_labels(config, settings)
        config = _for_its_tokens(config, settings)
    if isinstance(config, VisionConfig) and config.num_classes is None:
        raise UserError(f"{name} needs to know how many classes there are: give num_classes")
    _check_memory(name, counted(FAMILIES[found.family].build_without_memory(config)))
    return FAMILIES[found.family].build(config)


def _check_labels(config: EncoderOnlyConfig, given: dict[str, Any]) -> None:
    """Raise a UserError if labels were asked for, and the head has none."""
    if given.get("num_labels") and config.head not in ("classes", "tags"):
        raise UserError(
            f"num_labels is {config.num_labels}, but the head is {config.head!r}, which has no labels: "
            'give head="classes" for labels of texts, or head="tags" for labels of words'
        )


def _for_its_tokens(config: EncoderOnlyConfig, given: dict[str, Any]) -> EncoderOnlyConfig:
    """The same settings, without the preset's token dropout if there is no mask token for it."""
    if config.special_tokens.mask is not None or config.head == "masked" or not config.token_dropout:
        return config
    if "token_dropout" in given:
        raise UserError(
            f"token_dropout is {config.token_dropout}, but nothing says which token is the mask: give its id, such as "
            'special_tokens={"mask": 3}, or leave token_dropout out'
        )
    return replace(config, token_dropout=0.0)


def _check_memory(name: str, parameters: int) -> None:
    """Raise a UserError if the parameters alone are more than the default device holds."""
    device = torch.get_default_device()
    if device.type != "meta" and 4 * parameters > free_memory(device):
        raise UserError(
            f"{name} has {parameters / 1e9:,.1f} billion parameters, which take {4 * parameters / 1e9:,.0f} GB, but "
            f'there are {free_memory(device) / 1e9:,.0f} GB: build it under `with torch.device("meta"):`, without '
            f"memory, or let `heedful plan {name} --gpus 512` say what it takes"
        )
