"""Rows of numbers of different lengths, in files that are mapped into memory, not loaded."""

from array import array
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.prepared.mapped import ResidentPages, mapped_array, mapped_numbers

Numbers = npt.NDArray[np.integer[Any]]


def token_dtype(vocabulary_size: int) -> type[np.uint16] | type[np.uint32]:
    """The smallest type that can hold the ids of a vocabulary."""
    return np.uint16 if vocabulary_size <= 1 << 16 else np.uint32


class RaggedFiles(NamedTuple):
    """The numbers of all rows one after another, the rows' lengths, and perhaps the places at which rows begin."""

    numbers: Path
    lengths: Path
    offsets: Path | None = None

    @classmethod
    def beside(cls, path: Path) -> "RaggedFiles":
        """Two files with the same name."""
        return cls(path.with_suffix(".bin"), path.with_suffix(".npy"))


class RaggedWriter:
    """Writes rows one by one or in blocks; only their lengths stay in memory until the end."""

    def __init__(self, files: RaggedFiles, dtype: npt.DTypeLike) -> None:
        self._files, self._dtype = files, np.dtype(dtype)
        self._file = files.numbers.open("wb")
        self._lengths = array("i")
        self.numbers = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, row: npt.ArrayLike) -> None:
        """Append a row."""
        numbers = np.asarray(row, self._dtype)
        self._file.write(numbers.tobytes())
        self._lengths.append(len(numbers))
        self.numbers += len(numbers)

    def add_block(self, numbers: Numbers, lengths: npt.NDArray[np.int32]) -> None:
        """Append several rows, given as their numbers one after another, and their lengths."""
        self._file.write(numbers.astype(self._dtype).tobytes())
        self._lengths.frombytes(lengths.tobytes())
        self.numbers += len(numbers)

    def close(self) -> None:
        """Write the index, after which the rows can be read."""
        self._file.close()
        lengths = np.array(self._lengths, np.int32)
        np.save(self._files.lengths, lengths)
        if self._files.offsets:
            np.save(self._files.offsets, _offsets(lengths))


class Ragged:
    """The rows that a RaggedWriter wrote; reading one costs no more than a slice."""

    def __init__(self, files: RaggedFiles, dtype: npt.DTypeLike) -> None:
        self.lengths: npt.NDArray[np.int32] = mapped_array(files.lengths)
        self._offsets: npt.NDArray[np.int64] = mapped_array(files.offsets) if files.offsets else _offsets(self.lengths)
        self._numbers: Numbers = mapped_numbers(files.numbers, dtype)
        self._pages = ResidentPages(self.lengths, self._offsets, self._numbers)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Numbers:
        self._pages.read(1)
        start = self._offsets[index]
        return self._numbers[start : start + self.lengths[index]]


def _offsets(lengths: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.cumsum(lengths, dtype=np.int64) - lengths
