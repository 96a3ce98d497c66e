"""Where the tensors of a checkpoint lie: whole, in a file per group, or in pieces that several processes wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

# The file that says which pieces there are; a checkpoint without it has whole tensors.
PIECES = "pieces.json"
KINDS = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


class DamagedCheckpointError(Exception):
    """A checkpoint that cannot be used; the text says why."""


@dataclass(frozen=True)
class StoredPiece:
    """A part of a tensor: its file, its name there, and its place in the whole."""

    file: str
    key: str
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    def in_whole(self) -> tuple[slice, ...]:
        """Its place, to index the whole tensor with."""
        return tuple(slice(first, first + size) for first, size in zip(self.offsets, self.sizes, strict=True))


@dataclass(frozen=True)
class Stored:
    """A tensor of a checkpoint: its type and shape, and the pieces that make it up."""

    kind: str
    shape: tuple[int, ...]
    pieces: tuple[StoredPiece, ...]


def stored_tensors(path: Path) -> dict[str, Stored]:
    """The tensors of a checkpoint, by group and name (`model/NAME`); a DamagedCheckpointError if they make no sense."""
    if (path / PIECES).exists():
        tensors = read_object(path / PIECES).get("tensors")
        if not isinstance(tensors, dict):
            raise DamagedCheckpointError(f"{PIECES} does not say which tensors there are")
        return {name: _stored_of(name, entry) for name, entry in tensors.items()}
    found = {}
    for file in sorted(path.glob("*.safetensors")):
        with opened(file) as content:
            for key in content.keys():  # noqa: SIM118 (not a dictionary)
                part = content.get_slice(key)
                shape = tuple(part.get_shape())
                piece = StoredPiece(file.name, key, (0,) * len(shape), shape)
                found[f"{file.stem}/{key}"] = Stored(part.get_dtype(), shape, (piece,))
    return found


def pieces_text(tensors: Mapping[str, Stored]) -> str:
    """What `pieces.json` holds."""
    entries = {
        name: {
            "dtype": each.kind,
            "shape": each.shape,
            "pieces": [
                {"file": piece.file, "key": piece.key, "offsets": piece.offsets, "sizes": piece.sizes}
                for piece in each.pieces
            ],
        }
        for name, each in sorted(tensors.items())
    }
    return json.dumps({"format": 1, "tensors": entries}, indent=1)


def _stored_of(name: str, entry: Any) -> Stored:
    try:
        kind, shape = entry["dtype"], _counts(entry["shape"])
        pieces = tuple(_piece_of(piece, shape) for piece in entry["pieces"])
        # As many numbers as the tensor has, none of them twice: so they are all there.
        complete = sum(math.prod(piece.sizes) for piece in pieces) == math.prod(shape) and not overlap(pieces)
        if kind not in KINDS or not complete:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise DamagedCheckpointError(f"{PIECES} does not say where {name[:80]} is") from None
    return Stored(kind, shape, pieces)


def _piece_of(entry: Any, shape: Sequence[int]) -> StoredPiece:
    file, key, offsets, sizes = entry["file"], entry["key"], _counts(entry["offsets"]), _counts(entry["sizes"])
    # Only a file in this folder itself: the name is data, and must not lead elsewhere.
    if not isinstance(key, str) or Path(file).name != file or not file.endswith(".safetensors"):
        raise ValueError
    if any(first + size > length for first, size, length in zip(offsets, sizes, shape, strict=True)):
        raise ValueError
    return StoredPiece(file, key, offsets, sizes)


def overlap(pieces: Sequence[StoredPiece]) -> bool:
    """Whether some pieces of a tensor have a number in common."""
    begun: list[StoredPiece] = []  # that go on in the row where the next one begins: few, however many pieces there are
    for piece in sorted((each for each in pieces if math.prod(each.sizes)), key=lambda each: each.offsets):
        begun = [each for each in begun if each.offsets[0] + each.sizes[0] > piece.offsets[0]]
        if any(_meet(each, piece) for each in begun):
            return True
        begun.append(piece)
    return False


def _meet(one: StoredPiece, other: StoredPiece) -> bool:
    places = zip(one.offsets, one.sizes, other.offsets, other.sizes, strict=True)
    return all(first < begin + length and begin < first + size for first, size, begin, length in places)


def _counts(numbers: Any) -> tuple[int, ...]:
    if not isinstance(numbers, list) or any(type(each) is not int or each < 0 for each in numbers):
        raise ValueError
    return tuple(numbers)


def load_group(path: Path, group: str, stored: Mapping[str, Stored]) -> dict[str, Tensor]:
    """The whole tensors of a group, such as "model", by their names."""
    wanted = {name.partition("/")[2]: each for name, each in stored.items() if name.partition("/")[0] == group}
    found: dict[str, Tensor] = {}
    for file in sorted({piece.file for each in wanted.values() for piece in each.pieces}):
        with opened(path / file) as content:
            for name, each in wanted.items():
                for piece in each.pieces:
                    if piece.file == file:
                        _put(found, name, each, piece, content.get_tensor(piece.key))
    return found


def _put(found: dict[str, Tensor], name: str, stored: Stored, piece: StoredPiece, content: Tensor) -> None:
    if content.shape != piece.sizes:
        raise DamagedCheckpointError(f"{piece.file} has another shape of {piece.key[:80]} than {PIECES} says")
    if piece.sizes == stored.shape:
        found[name] = content
        return
    if name not in found:
        found[name] = torch.empty(stored.shape, dtype=kind_of(stored))
    found[name][piece.in_whole()] = content


def kind_of(stored: Stored) -> torch.dtype:
    """The type of a stored tensor."""
    if stored.kind not in KINDS:
        raise DamagedCheckpointError(f"it holds {stored.kind[:20]}, expected real numbers")
    return KINDS[stored.kind]


@contextmanager
def opened(file: Path) -> Iterator[Any]:
    """A safetensors file, opened to read parts of its tensors; a DamagedCheckpointError if that is not possible."""
    try:
        with safe_open(file, "pt") as content:
            yield content
    except SafetensorError as error:
        raise DamagedCheckpointError(f"{file.name} cannot be read: {error}") from None
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object in a file of a checkpoint."""
    content = file.read_bytes()
    if not content:
        raise DamagedCheckpointError(f"{file.name} is empty")
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedCheckpointError(f"{file.name} is not valid JSON") from None
    if not isinstance(data, dict):
        raise DamagedCheckpointError(f"{file.name} holds no JSON object")
    return data
