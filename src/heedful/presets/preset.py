"""What a preset is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from heedful.config import from_dict, to_dict
from heedful.settings.families import FAMILY_SETTINGS
from heedful.training.config import TrainingConfig

Settings = dict[str, Any]


@dataclass(frozen=True)
class Preset:
    """The settings of a model and of its training; `given` names those that the preset sets, such as "model.width".

    All others have their defaults, and a run may choose some of them to suit its data and machine.
    """

    family: str
    model: Any
    training: TrainingConfig
    given: tuple[str, ...]


def make_preset(family: str, model: Settings, training: Settings) -> Preset:
    """A preset with these settings; a setting that does not exist is an error."""
    given = tuple(_names({"model": model, "training": training}))
    settings = from_dict(FAMILY_SETTINGS[family], model, "model")
    return Preset(family, settings, from_dict(TrainingConfig, training, "training"), given)


def given_settings(preset: Preset) -> dict[str, Settings]:
    """What a preset sets, as the tables "model" and "training", which a user's own settings override."""
    whole = {"model": to_dict(preset.model), "training": to_dict(preset.training)}
    found: dict[str, Settings] = {"model": {}, "training": {}}
    for name in preset.given:
        *tables, key = name.split(".")
        here, there = found, whole
        for table in tables:
            here, there = here.setdefault(table, {}), there[table]
        here[key] = there[key]
    return found


def _names(settings: Settings, where: str = "") -> Iterator[str]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _names(value, f"{where}{key}.")
        else:
            yield f"{where}{key}"
