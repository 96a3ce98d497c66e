"""What a process holds of each parameter of a model spread over processes, and how to get the whole back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from heedful.training.parallel.placements import REPLICATED, Placement
from heedful.training.parallel.tensor import local_tensor


@dataclass(frozen=True)
class Piece:
    """Rows of a local tensor, starting at `row`, and where they lie in the whole one."""

    row: int
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    def of(self, local: Tensor) -> Tensor:
        """The piece itself, given the local tensor."""
        return local.narrow(0, self.row, self.sizes[0]) if local.dim() else local

    def in_whole(self, whole: Tensor) -> Tensor:
        """The place of the piece in the whole tensor."""
        for axis, (offset, size) in enumerate(zip(self.offsets, self.sizes, strict=True)):
            whole = whole.narrow(axis, offset, size)
        return whole


@dataclass(frozen=True)
class Share:
    """What this process holds of a tensor: a local tensor, and where its pieces lie in the whole one of that shape."""

    local: Tensor
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]

    def at(self, offsets: Sequence[int]) -> Tensor:
        """The piece that begins at a place of the whole tensor."""
        return next(each.of(self.local) for each in self.pieces if each.offsets == tuple(offsets))


def whole_share(tensor: Tensor) -> Share:
    """The share of a process that has all of a tensor."""
    return Share(tensor, tuple(tensor.shape), (Piece(0, (0,) * tensor.dim(), tuple(tensor.shape)),))


def shares_of(tensors: Mapping[str, Tensor], placements: Mapping[str, Placement], mesh: DeviceMesh) -> dict[str, Share]:
    """What this process holds of each tensor; moments are named after their parameter, as NAME/exp_avg."""
    found = {}
    for name, tensor in tensors.items():
        local = local_tensor(tensor.detach())
        if isinstance(tensor, DTensor):
            pieces = pieces_of(tensor, placements.get(name.partition("/")[0], REPLICATED), mesh)
            found[name] = Share(local, tuple(tensor.shape), tuple(pieces))
        else:
            found[name] = whole_share(local)
    return found


def pieces_of(parameter: Tensor, placement: Placement, mesh: DeviceMesh) -> list[Piece]:
    """The pieces of a parameter that this process holds: a shard of the rows of its share of the layer."""
    tensor, shard = mesh["tensor"], mesh["shard"]
    shape, axis = list(parameter.shape), placement.axis
    ranges = [(0, shape[0])] if shape else []
    columns = 0
    if axis is not None:
        places = placement.ranges(shape[axis], tensor.get_local_rank(), tensor.size())
        if axis == 0:
            ranges = places
        else:
            ((columns, shape[axis]),) = places
    rows = sum(count for _, count in ranges)
    step = -(-rows // shard.size())
    first, last = (min(each * step, rows) for each in (shard.get_local_rank(), shard.get_local_rank() + 1))
    found, begin = [], 0
    for place, count in ranges:
        start, end = max(first, begin), min(last, begin + count)
        if start < end:
            offsets = [place + start - begin, *(columns if each == axis else 0 for each in range(1, len(shape)))]
            found.append(Piece(start - first, tuple(offsets), (end - start, *shape[1:])))
        begin += count
    return found


def whole_tensors(
    tensors: Mapping[str, Tensor], placements: Mapping[str, Placement], mesh: DeviceMesh
) -> Iterator[tuple[str, Tensor]]:
    """Each whole tensor, one at a time, in all processes, which must ask for them together."""
    for name, tensor in tensors.items():
        placement = placements.get(name.partition("/")[0], REPLICATED)  # moments are named after their parameter
        if not isinstance(tensor, DTensor):
            yield name, tensor.detach()
            continue
        local = local_tensor(tensor.detach())
        whole = torch.zeros(tensor.shape, dtype=local.dtype, device=local.device)
        for piece in pieces_of(tensor, placement, mesh):
            piece.in_whole(whole).copy_(piece.of(local))
        dist.all_reduce(whole, group=mesh["shard"].get_group())
        if placement.axis is not None:
            dist.all_reduce(whole, group=mesh["tensor"].get_group())
        yield name, whole


@torch.no_grad()
def fill_from_whole(
    tensors: Mapping[str, Tensor],
    whole: Mapping[str, Tensor],
    placements: Mapping[str, Placement],
    mesh: DeviceMesh,
) -> None:
    """Put whole tensors, which every process has, into those of a spread model."""
    for name, tensor in tensors.items():
        local = local_tensor(tensor)
        if not isinstance(tensor, DTensor):
            local.copy_(whole[name])
            continue
        for piece in pieces_of(tensor, placements.get(name, REPLICATED), mesh):
            piece.of(local).copy_(piece.in_whole(whole[name]))
