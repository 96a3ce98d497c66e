"""Storage for torch.distributed.checkpoint: safetensors, and JSON in place of its pickled metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItem
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from heedful.storage import writing
from heedful.training.checkpoint import STATE, begin_checkpoint, being_written, end_checkpoint, write_tensors
from heedful.training.stored_tensors import (
    KINDS,
    PIECES,
    DamagedCheckpointError,
    Stored,
    StoredPiece,
    kind_of,
    opened,
    pieces_text,
)

NAMES = {kind: name for name, kind in KINDS.items()}


class PieceWriter(StorageWriter):
    """Writes a checkpoint as a folder with one file per process, which gets its name when all are complete."""

    def __init__(self, final: Path, state: dict[str, Any], size: int) -> None:
        self.final, self.state, self.size = final, state, size

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """A writer is for one checkpoint."""

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Make the folder, before the others are told what to write."""
        if is_coordinator:
            with writing(self.final, self.size):
                begin_checkpoint(self.final)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Each process is told the name of its file."""
        return [replace(plan, storage_data=f"rank-{rank:05d}.safetensors") for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write this process's file to disk, unless others write all that it has."""
        if not plan.items:
            return _done([])
        tensors: dict[str, Tensor] = {}
        for item in plan.items:
            content = planner.resolve_data(item)
            assert isinstance(content, Tensor)
            tensors[_key(item)] = content.cpu()
        file = plan.storage_data
        with writing(self.final, self.size):
            checksum = write_tensors(being_written(self.final) / file, tensors)
        return _done([WriteResult(item.index, 0, (file, _key(item), checksum)) for item in plan.items])

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Add what readers must know about the files, and give the folder its name."""
        places = {each.index: each.storage_data for found in results for each in found}
        stored: dict[str, list[StoredPiece]] = {}
        for index, (file, key, _) in places.items():
            chunks = metadata.state_dict_metadata[index.fqn].chunks  # type: ignore[union-attr]
            sizes = next(each.sizes for each in chunks if each.offsets == index.offset)
            piece = StoredPiece(file, key, tuple(index.offset or ()), tuple(sizes))
            stored.setdefault(index.fqn, []).append(piece)
        entries = {name: _entry(metadata.state_dict_metadata[name], pieces) for name, pieces in stored.items()}
        checksums = {file: checksum for file, _, checksum in places.values()}
        texts = {STATE: json.dumps(self.state, indent=1), PIECES: pieces_text(entries)}
        with writing(self.final, self.size):
            end_checkpoint(self.final, texts, checksums)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """A writer is made with its folder, not found by a name."""
        return False


def _key(item: WriteItem) -> str:
    """The name of a piece in its file."""
    return f"{item.index.fqn}@{','.join(map(str, item.index.offset or ()))}"


def _entry(metadata: Any, pieces: list[StoredPiece]) -> Stored:
    ordered = sorted(pieces, key=lambda piece: piece.offsets)
    return Stored(NAMES[metadata.properties.dtype], tuple(metadata.size), tuple(ordered))


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


class PieceReader(StorageReader):
    """Reads parts of the tensors that a checkpoint has, whole ones or pieces."""

    def __init__(self, path: Path, stored: Mapping[str, Stored]) -> None:
        self.path, self.stored = path, stored

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """A reader is for one checkpoint."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What the checkpoint has, in torch's terms."""
        return Metadata(
            {
                name: TensorStorageMetadata(
                    TensorProperties(dtype=kind_of(each)),
                    torch.Size(each.shape),
                    [ChunkStorageMetadata(torch.Size(at.offsets), torch.Size(at.sizes)) for at in each.pieces],
                )
                for name, each in self.stored.items()
            }
        )

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """There is nothing to set up."""

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """The plan as it is."""
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """The plans as they are."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read file by file, and from each only what was asked for."""
        by_file: dict[str, list[tuple[Any, StoredPiece]]] = {}
        for item in plan.items:
            pieces = self.stored[item.storage_index.fqn].pieces
            piece = next(each for each in pieces if each.offsets == tuple(item.storage_index.offset or ()))
            by_file.setdefault(piece.file, []).append((item, piece))
        for file, found in by_file.items():
            with opened(self.path / file) as content:
                for item, piece in found:
                    target = planner.resolve_tensor(item)
                    target.copy_(_part(content, piece, item.storage_offsets, item.lengths))
                    planner.commit_tensor(item, target)
        return _done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """A reader is made with its folder, not found by a name."""
        return False


def _part(content: Any, piece: StoredPiece, offsets: torch.Size, lengths: torch.Size) -> Tensor:
    if not piece.sizes:
        found: Tensor = content.get_tensor(piece.key)
    else:
        stored = content.get_slice(piece.key)
        if tuple(stored.get_shape()) != piece.sizes:
            raise DamagedCheckpointError(f"{piece.file} has another shape of {piece.key[:80]} than {PIECES} says")
        found = stored[tuple(slice(first, first + length) for first, length in zip(offsets, lengths, strict=True))]
    return found
