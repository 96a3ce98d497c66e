"""Whether settings can be those of some weights, before memory is taken for what they ask."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.config import shown
from heedful.errors import UserError
from heedful.settings.positions import traits_of

# Numbers in a table of positions that any model may have; one with more weights may have as many as these.
MOST_COMPUTED = 2**23


def check_sizes(settings: Any, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise a UserError if settings ask for more layers or positions than weights of these shapes can have."""
    stored = sum(math.prod(shape) for shape in shapes.values())
    for name, layers in _layers(settings):
        if layers > len(shapes):
            raise UserError(f"{name} is {layers:,}, but there are only {len(shapes):,} tensors")
    if _computed(settings) > max(stored, MOST_COMPUTED):
        raise UserError(f"model.max_length is {shown(settings.max_length)}, too many positions for these weights")


def _named(settings: Any, where: str = "model") -> Iterator[tuple[str, Any]]:
    """All settings at any depth, by their dotted names."""
    for each in dataclasses.fields(settings):
        value, name = getattr(settings, each.name), f"{where}.{each.name}"
        yield name, value
        if dataclasses.is_dataclass(value):
            yield from _named(value, name)


def _layers(settings: Any) -> Iterator[tuple[str, int]]:
    """All numbers of layers in some settings, by their dotted names."""
    return ((name, value) for name, value in _named(settings) if name.endswith(".num_layers"))


def _computed(settings: Any) -> int:
    """Numbers in the table that a scheme of positions computes, at most: it is as wide as the model, or as a key."""
    positions = getattr(settings, "positions", None)
    if not positions or not traits_of(positions).computes_table:
        return 0
    keys = (value or 0 for name, value in _named(settings) if name.endswith(".key_width"))
    return int(settings.max_length * max(settings.width, *keys, 0))
