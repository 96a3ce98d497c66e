"""How a run is laid out over its processes: what was asked for, filled in to suit their number."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from heedful.errors import UserError
from heedful.training.config import ParallelConfig

AXES = ("replicate", "shard", "tensor", "pipeline")
# Why the layers of a family cannot lie in stages, one after the other.
WITHOUT_STAGES = {
    "encoder_decoder": "what the encoder gives would have to pass through every stage of the decoder",
    "encoder_only": "its batches are of many lengths, and stages hand on activations of one shape",
    "vision": "its ends are patches and pooled classes, and stages are made for tokens at both ends",
    "xlnet": "both of its streams, and their memories, would have to be handed on",
    "recurrent": "its layers run along the tokens, and have no blocks to cut between",
}


def choose_layout(
    asked: ParallelConfig, size: int, device_type: str, before: ParallelConfig | None = None
) -> ParallelConfig:
    """The layout for `size` processes; what is left open is as `before`, if that suits them, or else replicated."""
    if before is not None and data_size(before) * model_size(before) == size:
        kept: dict[str, Any] = {name: getattr(before, name) or 1 for name in AXES}
        if all(getattr(asked, name) in (None, kept[name]) for name in AXES):
            asked = replace(asked, **kept)
    given = {name: getattr(asked, name) for name in AXES if getattr(asked, name) is not None}
    product = math.prod(given.values())
    in_words = " x ".join(f"{name} {value}" for name, value in given.items())
    if size % product or (given.keys() >= set(AXES[:3]) and product != size):
        raise UserError(
            f"training.parallel asks for {in_words} = {product} processes, but there {_are(size)}: "
            f"start {product} with torchrun or --processes, or change the settings"
        )
    # What is left open is replicated; if that is given, sharded; if both are, split. Stages must be asked for.
    rest, open_axes = size // product, [name for name in AXES[:3] if name not in given]
    filled = {**dict.fromkeys(AXES, 1), **given}
    if open_axes:
        filled[open_axes[0]] = rest
    chosen = replace(asked, **filled)
    if filled["pipeline"] > 1 and filled["shard"] * filled["tensor"] > 1:
        raise UserError(
            f"training.parallel.pipeline is {filled['pipeline']}, which goes with replicate alone: "
            "leave out shard and tensor, or pipeline"
        )
    if chosen.compile and filled["tensor"] > 1:
        raise UserError(
            "training.parallel.compile does not go with tensor: a compiler cannot follow layers that are split; "
            "leave one of the two out"
        )
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


def check_stages(config: ParallelConfig, family: str) -> None:
    """Raise a UserError if stages are asked of a family that cannot have them."""
    if (config.pipeline or 1) > 1 and family in WITHOUT_STAGES:
        raise UserError(
            f"training.parallel.pipeline is {config.pipeline}, but a model of the family {family!r} cannot lie in "
            f"stages: {WITHOUT_STAGES[family]}; use shard in place of it"
        )


def is_sharded(config: ParallelConfig) -> bool:
    """Whether torch spreads the model, so that no process need have all of it."""
    split = (config.shard or 1) * model_size(config) > 1
    return split or (config.reduce == "fast" and (config.replicate or 1) > 1)


def data_size(config: ParallelConfig) -> int:
    """How many processes, or groups of processes with the same parts, take parts of a step side by side."""
    return (config.replicate or 1) * (config.shard or 1)


def model_size(config: ParallelConfig) -> int:
    """How many processes have the same parts of a step, because they split layers or are stages of one model."""
    return (config.tensor or 1) * (config.pipeline or 1)
