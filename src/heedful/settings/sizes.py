"""Whether settings can belong to some weights, or to any, before memory is allocated for them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heedful.config import shown
from heedful.errors import UserError
from heedful.settings.positions import traits_of

# Numbers that any model's table of positions may have; a model with more weights may have as many as it has weights.
MOST_COMPUTED = 2**23
# Settings that equal the number of rows or columns of some tensor.
ROWS_AND_COLUMNS = {"vocabulary_size", "width", "hidden_width", "inner_width", "key_width", "value_width", "num_labels"}

# The largest numbers that new models may have: larger ones are slips, which would take hours or the memory to fail.
LARGEST = {"num_layers": 10_000, "vocabulary_size": 2**22}


def check_new_sizes(settings: Any) -> None:
    """Raise a UserError for settings of a new model that are larger than any model's."""
    for name, value in _whole_numbers(settings):
        if value > (largest := LARGEST.get(name.rpartition(".")[2], value)):
            raise UserError(f"{name} is {shown(value)}, but must be at most {largest:,}")


def check_sizes(settings: Any, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise a UserError if settings ask for more layers, rows or positions than weights of these shapes can have."""
    stored = sum(math.prod(shape) for shape in shapes.values())
    for name, value in _whole_numbers(settings):
        own_name = name.rpartition(".")[2]
        if own_name == "num_layers" and value > len(shapes):
            raise UserError(f"{name} is {value:,}, but there are only {len(shapes):,} tensors")
        if own_name in ROWS_AND_COLUMNS and value > stored:
            raise UserError(f"{name} is {shown(value)}: a model of that size is larger than its weights")
    if _computed(settings) > max(stored, MOST_COMPUTED):
        raise UserError(f"model.max_length is {shown(settings.max_length)}, too many positions for these weights")


def _whole_numbers(settings: Any, where: str = "model") -> Iterator[tuple[str, int]]:
    """All whole numbers in some settings, by their dotted names."""
    for each in dataclasses.fields(settings):
        value, name = getattr(settings, each.name), f"{where}.{each.name}"
        if isinstance(value, int):
            yield name, value
        elif dataclasses.is_dataclass(value):
            yield from _whole_numbers(value, name)


def _computed(settings: Any) -> int:
    """Numbers in the table that a scheme of positions computes, at most."""
    positions = getattr(settings, "positions", None)
    if not positions or not traits_of(positions).computes_table:
        return 0
    widths = [width for name, width in _whole_numbers(settings) if name.endswith(".key_width")]
    return int(settings.max_length * max([settings.width, *widths]))
