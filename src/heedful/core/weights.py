"""The tensors of a safetensors file, one at a time, with everything in its header checked before use."""

from __future__ import annotations

import copy
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from heedful.config import shown
from heedful.core.interface import TYPES, add_to_checksum, joined_checksum
from heedful.errors import UserError
from heedful.files import file_version
from heedful.weights_seal import BLOCK, OWN, check_seal

# Translating a line should not wait for numpy.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LARGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor is in its file."""

    kind: str
    shape: tuple[int, ...]
    begin: int
    size: int


class Weights(ABC):
    """The tensors of a model, open for reading, in one file or in several."""

    path: Path
    # What distinguishes the files from others that replace them.
    version: tuple[tuple[int, int, int], ...]
    metadata: dict[str, str]
    tensors: Mapping[str, StoredTensor]

    @abstractmethod
    def close(self) -> None:
        """Close the files."""

    @abstractmethod
    def check(self) -> None:
        """Raise a UserError if a file is not as it was written."""

    @abstractmethod
    def check_pieces(self) -> None:
        """The same, using the checksums of tensors that were read in pieces; only the others are read now."""

    @abstractmethod
    def pieces(self, name: str) -> Iterator[tuple[int, memoryview]]:
        """A tensor, some rows at a time: the first row's number and the bytes, in memory that is reused."""

    @abstractmethod
    def opened_again(self) -> Weights | None:
        """The same files for another thread, which must close them; None if they have been replaced."""

    @abstractmethod
    def read(self, name: str, *, into: memoryview | None = None) -> memoryview:
        """The bytes of a tensor, in the given buffer or in one that the next call reuses."""

    @abstractmethod
    def mapped(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor, in memory that processes share; what one of them writes there stays private."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor."""
        return {name: tensor.shape for name, tensor in self.tensors.items()}

    def floats(self, name: str) -> NDArray[np.float32]:
        """A tensor as floats, in its own memory."""
        import numpy as np

        raw, tensor = np.frombuffer(self.read(name), np.uint8), self.tensors[name]
        if tensor.kind == "BF16":
            numbers = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            numbers = raw.view({"F32": np.float32, "F16": np.float16, "F64": np.float64}[tensor.kind])
        with np.errstate(over="ignore"):  # what is too large for a float becomes infinite
            return numbers.astype(np.float32).reshape(tensor.shape)


class WeightsFile(Weights):
    """A safetensors file that is open for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.file = path.open("rb")
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        self.version = (file_version(os.fstat(self.file.fileno())),)
        self.metadata = {}
        try:
            self.tensors = self._read_header()
        except BaseException:
            self.file.close()
            raise
        self._buffer = bytearray()
        self._mapped: NDArray[np.uint8] | None = None
        # The checksums of tensors that were read in pieces, also by other threads.
        self._sums: dict[str, int] = {}

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def check(self) -> None:
        """Raise a UserError if the file is not as it was written."""
        check_seal(self.file, self.path, self.header_size, self.metadata)

    def check_pieces(self) -> None:
        """The same, using the checksums of tensors that were read in pieces; only the others are read now."""
        check_seal(self.file, self.path, self.header_size, self.metadata, self._with_tensors)

    def _with_tensors(self, crc: int) -> int:
        for name, tensor in sorted(self.tensors.items(), key=lambda each: each[1].begin):
            if name not in self._sums:
                for _ in self.pieces(name):
                    pass
            crc = joined_checksum(crc, self._sums[name], tensor.size)
        return crc

    def pieces(self, name: str) -> Iterator[tuple[int, memoryview]]:
        """A tensor, some rows at a time: the first row's number and the bytes, in memory that is reused."""
        tensor, crc = self.tensors[name], 0
        rows = tensor.shape[0] if len(tensor.shape) > 1 else 1
        row_size = tensor.size // max(1, rows)
        step = max(1, BLOCK // max(1, row_size))
        self.file.seek(tensor.begin)
        for first in range(0, rows, step):
            piece = self._read(name, min(step, rows - first) * row_size, None)
            if OWN in self.metadata:
                crc = add_to_checksum(piece, crc)
            yield first, piece
        self._sums[name] = crc

    def opened_again(self) -> WeightsFile | None:
        """The same file for another thread, which must close it; None if it has been replaced."""
        try:
            file = self.path.open("rb")
        except OSError:  # a run has written other files, and removed this one
            return None
        if (file_version(os.fstat(file.fileno())),) != self.version:
            file.close()
            return None
        other = copy.copy(self)
        other.file, other._buffer = file, bytearray()
        return other

    def read(self, name: str, *, into: memoryview | None = None) -> memoryview:
        """The bytes of a tensor, in the given buffer or in one that the next call reuses."""
        tensor = self.tensors[name]
        self.file.seek(tensor.begin)
        return self._read(name, tensor.size, into)

    def _read(self, name: str, size: int, into: memoryview | None) -> memoryview:
        if into is None and len(self._buffer) < size:
            self._buffer = bytearray(size)
        view = memoryview(self._buffer if into is None else into)[:size]
        if self.file.readinto(view) != size:
            raise self._broken(f"{name} ends too early")
        return view

    def mapped(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor, in memory that processes share; what one of them writes there stays private."""
        import numpy as np

        if self._mapped is None:
            self._mapped = np.memmap(self.file, np.uint8, mode="c")
        tensor = self.tensors[name]
        return self._mapped[tensor.begin : tensor.begin + tensor.size]

    def _broken(self, why: str) -> UserError:
        return UserError(f"{self.path} is broken: {why}")

    def _read_header(self) -> dict[str, StoredTensor]:
        length = os.fstat(self.file.fileno()).st_size
        size = int.from_bytes(self.file.read(8), "little")
        if size > min(LARGEST_HEADER, length - 8):
            raise self._broken("its header is longer than the file")
        try:
            header = json.loads(self.file.read(size).decode("utf-8"), object_pairs_hook=_table)
        except (ValueError, RecursionError):
            raise self._broken("its header is not JSON, or has a name twice") from None
        if not isinstance(header, dict):
            raise self._broken("its header is not a table")
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(each, str) for each in metadata.values()):
            raise self._broken("its metadata are not texts")
        self.header_size, self.metadata = size, metadata
        if any("\ud800" <= character <= "\udfff" for name in header for character in name):
            raise self._broken("half a character is in a tensor's name")
        tensors = {name: self._tensor(name, entry, 8 + size, length) for name, entry in header.items()}
        end = 8 + size
        for tensor in sorted(tensors.values(), key=lambda each: (each.begin, each.size)):
            if tensor.begin != end:
                raise self._broken("its tensors overlap, or leave gaps")
            end += tensor.size
        if end != length:
            raise self._broken(f"it has {length} bytes, and its header speaks of {end}")
        return tensors

    def _tensor(self, name: str, entry: Any, start: int, length: int) -> StoredTensor:
        try:
            kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            numbers = [*shape, begin, end]
            if not isinstance(kind, str) or any(type(each) is not int or each < 0 for each in numbers):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise self._broken(f"its header does not say where {name[:80]} is") from None
        if not isinstance(kind, str) or kind not in TYPES:
            known = ", ".join(TYPES)
            raise UserError(f"{self.path}: {name[:80]} holds {shown(kind)}, expected real numbers: {known}")
        if begin > end or start + end > length or end - begin != math.prod(shape) * TYPES[kind][1]:
            raise self._broken(f"{name[:80]} has other bytes than its shape says")
        return StoredTensor(kind, tuple(shape), start + begin, end - begin)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found
