"""The weights of a model folder, whether they are in one file or in several."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.core.weights import Weights, WeightsFile
from heedful.errors import UserError
from heedful.files import file_version
from heedful.weights_index import INDEX, WeightsIndex, read_index, weights_path
from heedful.weights_seal import OWN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How often to look for shards while others replace them.
ATTEMPTS = 5


def open_weights(folder: Path) -> Weights:
    """The weights of a model folder; if they are being replaced, either the old or the new ones."""
    index = folder / INDEX
    for _ in range(ATTEMPTS):
        version = _version(index)
        try:
            path = weights_path(folder)
            return WeightShards(path) if path == index else WeightsFile(path)
        except UserError:
            # The single file, or the shards of an index, disappear when an index is replaced, added or removed.
            if _version(index) == version:
                raise
    raise UserError(f"the weights in {folder} are replaced again and again: try again when that has come to its end")


def _version(file: Path) -> tuple[int, int, int] | None:
    try:
        return file_version(file.stat())
    except OSError:
        return None


class WeightShards(Weights):
    """Safetensors files that are all open for reading: files that replace them are not seen."""

    def __init__(self, index: Path) -> None:
        self.path = index
        content = read_index(index)
        with ExitStack() as stack:
            self.files = {name: stack.enter_context(_shard(index, name)) for name in content.files}
            self._check_index(content)
            stack.pop_all()
        self._places = content.places
        self.tensors = {name: self.files[file].tensors[name] for name, file in content.places.items()}
        self.version = tuple(version for file in self.files.values() for version in file.version)
        self.metadata = next(iter(self.files.values())).metadata
        self._buffer = bytearray()

    def _check_index(self, index: WeightsIndex) -> None:
        """Raise a UserError unless the shards are those that the index was written with."""
        for name, file in self.files.items():
            expected = {tensor for tensor, place in index.places.items() if place == name}
            same = not index.checksums or file.metadata.get(OWN) == index.checksums[name]
            if not same or file.tensors.keys() != expected:
                what = "the checksum" if not same else "the tensors"
                raise UserError(
                    f"{file.path} is not the file that {INDEX} was written with: it does not have {what} that stand "
                    "there; put back a copy of it, or give the command that trained or imported the model again"
                )

    def close(self) -> None:
        """Close the files."""
        for file in self.files.values():
            file.close()

    def check(self) -> None:
        """Raise a UserError that names the first file that is not as it was written."""
        for file in self.files.values():
            file.check()

    def check_pieces(self) -> None:
        """The same, using the checksums of tensors that were read in pieces; only the others are read now."""
        for file in self.files.values():
            file.check_pieces()

    def pieces(self, name: str) -> Iterator[tuple[int, memoryview]]:
        """A tensor, some rows at a time: the first row's number and the bytes, in memory that is reused."""
        return self.files[self._places[name]].pieces(name)

    def opened_again(self) -> WeightShards | None:
        """The same files for another thread, which must close them; None if they have been replaced."""
        files: dict[str, WeightsFile] = {}
        with ExitStack() as stack:
            for name, file in self.files.items():
                again = file.opened_again()
                if again is None:
                    return None
                files[name] = stack.enter_context(again)
            stack.pop_all()
        other = copy.copy(self)
        other.files, other._buffer = files, bytearray()
        return other

    def read(self, name: str, *, into: memoryview | None = None) -> memoryview:
        """The bytes of a tensor, in the given buffer or in one that the next call reuses."""
        size = self.tensors[name].size
        if into is None and len(self._buffer) < size:  # one for all files
            self._buffer = bytearray(size)
        return self.files[self._places[name]].read(name, into=memoryview(self._buffer) if into is None else into)

    def mapped(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor, in memory that processes share; what one of them writes there stays private."""
        return self.files[self._places[name]].mapped(name)


def _shard(index: Path, name: str) -> WeightsFile:
    file = index.parent / name
    if not file.is_file():
        raise UserError(f"{file} is missing, in which {INDEX} says some of the weights to be")
    return WeightsFile(file)
