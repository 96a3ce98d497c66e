"""The families of models by their names in config.json, with the class of the settings of each."""

from __future__ import annotations

from typing import Any

from heedful.settings.decoder_only import DecoderOnlyConfig
from heedful.settings.encoder_decoder import EncoderDecoderConfig
from heedful.settings.encoder_only import EncoderOnlyConfig
from heedful.settings.recurrent import RecurrentConfig
from heedful.settings.vision import VisionConfig
from heedful.settings.xlnet import XLNetConfig

FAMILY_SETTINGS: dict[str, type[Any]] = {
    "encoder_decoder": EncoderDecoderConfig,
    "decoder_only": DecoderOnlyConfig,
    "encoder_only": EncoderOnlyConfig,
    "recurrent": RecurrentConfig,
    "xlnet": XLNetConfig,
    "vision": VisionConfig,
}
