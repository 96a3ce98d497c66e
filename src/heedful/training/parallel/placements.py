"""Where the parameters of the Transformer families go, by name, when a model is split over the tensor axis."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.layers.feed_forward import SwiGlu

Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Placement:
    """How one parameter is split: along `axis`, or not at all if that is None.

    A packed parameter holds several matrices one after another, such as those of queries, keys and values. Each of
    them is split separately, so that a process has whole heads; `packed` has their lengths along the axis.
    """

    axis: int | None
    packed: tuple[int, ...] = ()

    def share(self, whole: Tensor, rank: int, size: int) -> Tensor:
        """What the process `rank` of `size` holds of a parameter."""
        if self.axis is None:
            return whole
        pieces = whole.split(self.packed, self.axis) if self.packed else (whole,)
        shares = [_chunk(piece, self.axis, rank, size) for piece in pieces]
        return shares[0].clone() if len(shares) == 1 else torch.cat(shares, self.axis)

    def ranges(self, length: int, rank: int, size: int) -> list[tuple[int, int]]:
        """Where the share of a process lies in a parameter of that length: first places and lengths, in order."""
        found, begin = [], 0
        for piece in self.packed or (length,):
            step = -(-piece // size)
            first, last = min(rank * step, piece), min((rank + 1) * step, piece)
            found.append((begin + first, last - first))
            begin += piece
        return found

    def joined(self, shares: list[Tensor]) -> Tensor:
        """The whole parameter, rejoined from the shares of all processes in the order of their ranks."""
        if self.axis is None:
            return shares[0]
        length, size = sum(each.shape[self.axis] for each in shares), len(shares)
        pieces: list[tuple[int, Tensor]] = []
        for rank, share in enumerate(shares):
            places = self.ranges(length, rank, size)
            cut = share.split([count for _, count in places], self.axis)
            pieces += [(first, piece) for (first, _), piece in zip(places, cut, strict=True)]
        return torch.cat([piece for _, piece in sorted(pieces, key=lambda each: each[0])], self.axis)


def _chunk(piece: Tensor, axis: int, rank: int, size: int) -> Tensor:
    (first, count), *_ = Placement(axis).ranges(piece.shape[axis], rank, size)
    return piece.narrow(axis, first, count)


REPLICATED = Placement(None)
Rule = Callable[[nn.Module, str], Placement]


def _column(module: nn.Module, name: str) -> Placement:
    """The outputs of a layer: rows of its weights, and of its bias."""
    return Placement(0)


def _packed_heads(module: nn.Module, name: str) -> Placement:
    """The outputs of a layer that gives several parts, each with a number of heads of some width."""
    return Placement(0, tuple(heads * width for heads, width in cast(Parts, module.parts)))


def _inner(module: nn.Module, name: str) -> Placement:
    """The outputs of the first layer of a feed-forward network; SwiGLU takes two halves of them."""
    inner = cast(nn.Linear, module.inner_projection)
    halves = isinstance(module.activation, SwiGlu)
    return Placement(0, (inner.out_features // 2,) * 2 if halves else ())


def _row(module: nn.Module, name: str) -> Placement:
    """The inputs of a layer: columns of its weights; what is added to the sum is in all processes."""
    return Placement(1) if name == "weight" else REPLICATED


def _vocabulary(module: nn.Module, name: str) -> Placement:
    """The tokens: rows of an embedding or of the output layer, unless that tells classes apart."""
    config = module.config if hasattr(module, "config") else None
    return (
        REPLICATED if getattr(config, "head", "masked") != "masked" or hasattr(config, "num_classes") else Placement(0)
    )


# A rule gets the module that owns the layer: the one named by everything before the part in brackets.
RULES: tuple[tuple[str, Rule], ...] = (
    (r"(?:.*\.)?(?:attention|cross_attention)\.(query_key_value_projection|key_value_projection)", _packed_heads),
    (r"(?:.*\.)?(?:attention|cross_attention)\.(query_projection|distance_projection)", _column),
    (r"(?:.*\.)?feed_forward\.(inner_projection)", _inner),
    (r"(?:.*\.)?(?:attention|cross_attention|feed_forward)\.(output_projection)", _row),
    (r"(?:(?:source_|target_)?embedding\.)(table)", lambda module, name: Placement(0)),
    (r"(embedding|output)", _vocabulary),
)
# Parameters that attention uses directly, with the axis of their heads.
HEADS = {"scoring_vector": 0, "content_bias": 0, "position_bias": 0, "segment_bias": 0, "segment_embedding": 1}


def placements(model: nn.Module) -> dict[str, Placement]:
    """The placement of every parameter of a model, by its name; one that is used in two places has a single name.

    Queries, keys, values and the first layer of feed-forward networks are split by their outputs, the layers after them
    by their inputs, embeddings and the output layer over the vocabulary. Everything else, such as norms, is replicated.
    """
    return {name: _placement(model, name) for name, _ in model.named_parameters()}


def _placement(model: nn.Module, name: str) -> Placement:
    layer, _, last = name.rpartition(".")
    if last in HEADS and layer.endswith("attention"):
        return Placement(HEADS[last])
    for pattern, rule in RULES:
        found = re.fullmatch(pattern, layer)
        if found:
            owner = layer[: found.start(1)].rstrip(".")
            return rule(model.get_submodule(owner), last)
    return REPLICATED


def check_divisible(model: nn.Module, size: int) -> None:
    """Raise a UserError if a model cannot be split over this many processes."""
    for where, count, what in _counts(model):
        if count % size:
            raise UserError(
                f"training.parallel.tensor is {size}, but {where} has {count:,} {what}: choose a number that divides it"
            )


def _counts(model: nn.Module) -> Iterator[tuple[str, int, str]]:
    for name, module in model.named_modules():
        parts = getattr(module, "parts", ())
        yield from ((name, heads, "heads") for heads, _ in parts)
        if hasattr(module, "num_heads"):
            yield name, cast(int, module.num_heads), "heads"
        if name.endswith("feed_forward"):
            yield name, cast(nn.Linear, module.output_projection).in_features, "inner units"
