"""Which pieces of a checkpoint a process writes and reads, in the terms of torch.distributed.checkpoint."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from torch.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list

from heedful.training.parallel.pieces import Piece, Share
from heedful.training.stored_tensors import DamagedCheckpointError


class ShareSavePlanner(DefaultSavePlanner):
    """Writes the pieces of shares; where several processes have the same one, torch chooses which writes it.

    A DTensor would not do: the share of a packed parameter, such as that of queries, keys and values, has several
    pieces in the whole one.
    """

    def __init__(self, shares: Mapping[str, Share]) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)
        self.shares = shares

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Note whether this process is the coordinator."""
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """All pieces of this process."""
        items = [_write_item(name, share, piece) for name, share in self.shares.items() for piece in share.pieces]
        self.plan = SavePlan(items)
        return self.plan

    def resolve_data(self, write_item: WriteItem) -> Tensor:
        """The piece itself."""
        index = write_item.index
        assert index.offset is not None
        return self.shares[index.fqn].at(index.offset)


def _write_item(name: str, share: Share, piece: Piece) -> WriteItem:
    properties = TensorProperties(dtype=share.local.dtype)
    data = TensorWriteData(chunk_of(piece), properties, torch.Size(share.shape))
    return WriteItem(MetadataIndex(name, piece.offsets), WriteItemType.SHARD, tensor_data=data)


def chunk_of(piece: Piece) -> ChunkStorageMetadata:
    """Where a piece lies, in torch's terms."""
    return ChunkStorageMetadata(torch.Size(piece.offsets), torch.Size(piece.sizes))


class ShareLoadPlanner(LoadPlanner):
    """Fills shares from a checkpoint, whatever its pieces: from each, what it has in common with a share."""

    def __init__(self, shares: Mapping[str, Share]) -> None:
        self.shares = shares

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Note what the checkpoint has."""
        assert metadata is not None
        self.metadata = metadata

    def create_local_plan(self) -> LoadPlan:
        """What to read for the pieces of this process."""
        items: list[ReadItem] = []
        for name, share in self.shares.items():
            stored = self.metadata.state_dict_metadata.get(name)
            if not isinstance(stored, TensorStorageMetadata) or tuple(stored.size) != tuple(share.shape):
                raise DamagedCheckpointError(f"it does not have {name} in the shape {tuple(share.shape)}")
            items += create_read_items_for_chunk_list(name, stored, [chunk_of(piece) for piece in share.pieces])
        return LoadPlan(items)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Every process reads by itself."""
        return global_plan

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Nothing but tensors is stored."""
        raise AssertionError(read_item)

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The part of a piece that is filled from one stored piece."""
        assert read_item.dest_index.offset is not None
        part = self.shares[read_item.dest_index.fqn].at(read_item.dest_index.offset)
        for axis, (first, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths, strict=True)):
            part = part.narrow(axis, first, length)
        return part

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """It has been written in place."""
