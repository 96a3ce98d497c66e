"""The parameters that one GPU holds under a layout, counted from a model without memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from heedful.models.families import FAMILIES
from heedful.planning.layouts import Layout
from heedful.planning.shape import with_layers
from heedful.training.parallel.blocks import blocks_of
from heedful.training.parallel.placements import Placement, placements


@dataclass(frozen=True)
class Share:
    """A group of parameters that are gathered together: how many numbers a GPU holds, and how many when gathered."""

    held: int
    gathered: int


@dataclass(frozen=True)
class _Parameter:
    shape: tuple[int, ...]
    placement: Placement

    def share(self, tensor: int, shard: int) -> Share:
        """The share of the first GPU, which is never smaller than another's."""
        shape = list(self.shape)
        if self.placement.axis is not None:
            pieces = self.placement.ranges(shape[self.placement.axis], 0, tensor)
            shape[self.placement.axis] = sum(length for _, length in pieces)
        gathered = math.prod(shape)
        rows = shape[0] if shape else 1
        return Share(-(-rows // shard) * (gathered // max(1, rows)), gathered)


@dataclass(frozen=True)
class ModelParameters:
    """The parameters of a model: those of one block of each stack, with the number of blocks, and all others."""

    blocks: tuple[tuple[int, tuple[_Parameter, ...]], ...]
    others: tuple[_Parameter, ...]

    @property
    def total(self) -> int:
        """The number of parameters."""
        blocks = sum(count * _numbers(block) for count, block in self.blocks)
        return blocks + _numbers(self.others)

    def block_shares(self, layout: Layout) -> list[tuple[int, Share]]:
        """For each stack, its blocks on this GPU and what it has of each."""
        return [(count // layout.pipeline, _share(block, layout)) for count, block in self.blocks]

    def others_share(self, layout: Layout) -> Share:
        """What a GPU has of the parameters outside the blocks."""
        return _share(self.others, layout)

    def held(self, layout: Layout) -> int:
        """The numbers that a GPU holds between steps."""
        blocks = sum(count * share.held for count, share in self.block_shares(layout))
        return blocks + self.others_share(layout).held


def _numbers(parameters: Iterable[_Parameter]) -> int:
    return sum(math.prod(each.shape) for each in parameters)


@lru_cache(maxsize=4096)
def _share(parameters: tuple[_Parameter, ...], layout: Layout) -> Share:
    shares = [each.share(layout.tensor, layout.shard) for each in parameters]
    return Share(sum(each.held for each in shares), sum(each.gathered for each in shares))


def parameters_of(family: str, model: Any) -> ModelParameters:
    """The parameters of a model; the blocks of a stack are all alike, so one of each is built."""
    network = FAMILIES[family].build_without_memory(with_layers(family, model, 1))
    placed, taken = placements(network), set()
    counts = [model.encoder, model.decoder] if family == "encoder_decoder" else [model.stack]
    blocks = []
    for config, block in zip(counts, blocks_of(network), strict=True):
        own = {id(parameter) for parameter in block.parameters()}
        taken |= own
        names = [name for name, parameter in network.named_parameters() if id(parameter) in own]
        blocks.append((config.num_layers, _described(network, placed, names)))
    rest = [name for name, parameter in network.named_parameters() if id(parameter) not in taken]
    return ModelParameters(tuple(blocks), _described(network, placed, rest))


def _described(network: Any, placed: dict[str, Placement], names: list[str]) -> tuple[_Parameter, ...]:
    return tuple(_Parameter(tuple(network.get_parameter(name).shape), placed[name]) for name in names)
