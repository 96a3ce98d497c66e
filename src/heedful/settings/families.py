"""The families of models by their names in config.json, with the class of each one's settings."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

# The settings of each are in the file of the same name.
_CLASSES = {
    "encoder_decoder": "EncoderDecoderConfig",
    "decoder_only": "DecoderOnlyConfig",
    "encoder_only": "EncoderOnlyConfig",
    "recurrent": "RecurrentConfig",
    "xlnet": "XLNetConfig",
    "vision": "VisionConfig",
}


class _FamilySettings(Mapping[str, type[Any]]):
    """The classes, imported on demand: a translation does not wait for the settings of images."""

    def __getitem__(self, family: str) -> type[Any]:
        found: type[Any] = getattr(importlib.import_module(f"heedful.settings.{family}"), _CLASSES[family])
        return found

    def __contains__(self, family: object) -> bool:
        return family in _CLASSES

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


FAMILY_SETTINGS = _FamilySettings()
