"""How a run is laid out over its processes: what was asked for, filled in so that it goes with their number."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from heedful.errors import UserError
from heedful.training.config import ParallelConfig

AXES = ("replicate", "shard", "tensor")


def choose_layout(
    asked: ParallelConfig, size: int, device_type: str, before: ParallelConfig | None = None
) -> ParallelConfig:
    """The layout for `size` processes; what is open is as `before`, if that suits them, or else replicated."""
    if before is not None and data_size(before) * (before.tensor or 1) == size:
        kept: dict[str, Any] = {name: getattr(before, name) or 1 for name in AXES}
        if all(getattr(asked, name) in (None, kept[name]) for name in AXES):
            asked = replace(asked, **kept)
    given = {name: getattr(asked, name) for name in AXES if getattr(asked, name) is not None}
    product = math.prod(given.values())
    in_words = " x ".join(f"{name} {value}" for name, value in given.items())
    if size % product or (len(given) == len(AXES) and product != size):
        raise UserError(
            f"training.parallel asks for {in_words} = {product} processes, but there {_are(size)}: "
            f"start {product} with torchrun or --processes, or change the settings"
        )
    # All that is not asked for is replicated; if that is settled, sharded; and if both are, split.
    rest, open_axes = size // product, [name for name in AXES if name not in given]
    filled = {**given, **dict.fromkeys(open_axes, 1)}
    if open_axes:
        filled[open_axes[0]] = rest
    chosen = replace(asked, **filled)
    reduce = asked.reduce or (before.reduce if before else None)
    if reduce is None:
        reduce = "exact" if device_type == "cpu" and not is_sharded(chosen) else "fast"
    if reduce == "exact" and is_sharded(replace(chosen, reduce=None)):
        if asked.reduce is not None:
            raise UserError('training.parallel.reduce is "exact", which goes with replicate alone: leave it out')
        reduce = "fast"
    return replace(chosen, reduce=reduce)


def _are(size: int) -> str:
    return "is 1" if size == 1 else f"are {size}"


def is_sharded(config: ParallelConfig) -> bool:
    """Whether torch spreads the model, so that no process need have all of it."""
    split = (config.shard or 1) * (config.tensor or 1) > 1
    return split or (config.reduce == "fast" and (config.replicate or 1) > 1)


def data_size(config: ParallelConfig) -> int:
    """How many processes, or groups of them that split layers, take parts of a step side by side."""
    return (config.replicate or 1) * (config.shard or 1)
