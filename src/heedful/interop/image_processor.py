"""What preprocessor_config.json says about images: how they are scaled, cropped and normalised."""

from __future__ import annotations

import math
from typing import Any, cast, get_args

from heedful.config import shown
from heedful.interop.foreign_config import ForeignConfig
from heedful.settings.vision import PixelConfig, ScalingConfig, ScalingFilter

# By Pillow's numbers, which `resample` uses.
FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
assert set(FILTERS) == set(get_args(ScalingFilter))
# Images always get as many channels as the model takes.
KNOWN_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb"}
# Processors for which a single number as the size means a square.
SQUARE = ("ViT", "DeiT")


def read_pixels(config: ForeignConfig, channels: int) -> PixelConfig:
    """How bytes are normalised, in terms of pixels from 0 to 1."""
    factor = config.number("rescale_factor", 1 / 255) if config.flag("do_rescale", True) else 1.0
    if not factor > 0:
        raise config.error(f"rescale_factor is {shown(factor)}, but must be above 0")
    if not config.flag("do_normalize", True):
        return PixelConfig((0.0,), (1 / (255 * factor),))
    mean, deviation = (_numbers(config, name, channels) for name in ("image_mean", "image_std"))
    if not min(deviation) > 0:
        raise config.error(f"image_std is {shown(list(deviation))}, but must be above 0")
    # The usual factor must leave the numbers unchanged, to the last bit.
    scale = 1.0 if math.isclose(255 * factor, 1, rel_tol=1e-9) else 255 * factor
    return PixelConfig(tuple(each / scale for each in mean), tuple(each / scale for each in deviation))


def read_scaling(config: ForeignConfig, image_size: tuple[int, int]) -> ScalingConfig:
    """How images get the size that the model takes; unsupported settings are refused by name."""
    _refuse_other_steps(config)
    if not config.flag("do_resize", True):
        raise config.error("do_resize is False, and only True is supported: the model takes images of one size")
    number = config.integer("resample", FILTERS.index("bilinear"), 0, len(FILTERS))
    chosen = cast(ScalingFilter, FILTERS[number])
    size = _size(config, image_size)
    if not config.flag("do_center_crop", False):
        if size != image_size:
            raise config.error(f"size is {_words(size)}, but the model's image_size is {_words(image_size)}")
        return ScalingConfig(chosen)
    cut = _crop_size(config, image_size)
    if cut != image_size:
        raise config.error(f"crop_size is {_words(cut)}, but the model's image_size is {_words(image_size)}")
    if min(size) < max(cut) if len(size) == 1 else any(own < of for own, of in zip(size, cut, strict=True)):
        raise config.error(f"crop_size is {_words(cut)}, larger than size, which is {_words(size)}: not supported")
    return ScalingConfig(chosen, size if size != cut else None)


def _refuse_other_steps(config: ForeignConfig) -> None:
    for name in config.names:
        if name.startswith("do_") and name not in KNOWN_STEPS and config.value(name, False) is not False:
            raise config.error(f"{shown(name)} is {shown(config.value(name))}, which is not supported")
    for name in ("crop_pct", "rescale_offset", "pad_size", "size_divisor"):
        if config.value(name):
            raise config.error(f"{name} is {shown(config.value(name))}, which is not supported")


def _numbers(config: ForeignConfig, name: str, channels: int) -> tuple[float, ...]:
    given = config.value(name, [0.5])
    numbers = given if isinstance(given, list) else [given]
    right = all(type(each) in (int, float) and abs(each) < 2**53 for each in numbers)
    if not right or len(numbers) not in (1, channels):
        raise config.error(f"{name} is {shown(given)}, expected a number for each of {channels} channels")
    return tuple(float(each) for each in numbers)


def _size(config: ForeignConfig, image_size: tuple[int, int]) -> tuple[int, ...]:
    """The height and width that images are scaled to, or only the length of their shorter side."""
    given = config.value("size", {"height": image_size[0], "width": image_size[1]})
    kind = config.value("image_processor_type", config.value("feature_extractor_type", SQUARE[0]))
    if isinstance(given, dict) and set(given) == {"shortest_edge"}:
        return (_positive(config, "size", given["shortest_edge"]),)
    if not isinstance(given, dict) and not str(kind).startswith(SQUARE):
        raise config.error(f"size is {shown(given)}, expected 'height' and 'width', or 'shortest_edge'")
    return _pair(config, "size", given)


def _crop_size(config: ForeignConfig, image_size: tuple[int, int]) -> tuple[int, int]:
    return _pair(config, "crop_size", config.value("crop_size", {"height": image_size[0], "width": image_size[1]}))


def _pair(config: ForeignConfig, name: str, given: Any) -> tuple[int, int]:
    if isinstance(given, dict) and set(given) == {"height", "width"}:
        return _positive(config, name, given["height"]), _positive(config, name, given["width"])
    if isinstance(given, int):
        return (_positive(config, name, given),) * 2
    raise config.error(f"{name} is {shown(given)}, which is not supported: expected 'height' and 'width'")


def _positive(config: ForeignConfig, name: str, value: Any) -> int:
    if type(value) is not int or value < 1:
        raise config.error(f"{name} is {shown(value)}, expected a whole number from 1 up")
    return value


def _words(size: tuple[int, ...]) -> str:
    return "x".join(map(str, size))
