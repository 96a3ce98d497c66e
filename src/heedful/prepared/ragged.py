"""Rows of numbers of different lengths, in files that are mapped into memory, not loaded."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.integer[Any]]


class RaggedWriter:
    """Writes rows one by one; only their lengths stay in memory until the end."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self._path, self._dtype = path, np.dtype(dtype)
        self._file = path.with_suffix(".bin").open("wb")
        self._lengths: list[int] = []
        self.numbers = 0

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, row: npt.ArrayLike) -> None:
        """Append a row."""
        array = np.asarray(row, self._dtype)
        self._file.write(array.tobytes())
        self._lengths.append(len(array))
        self.numbers += len(array)

    def close(self) -> None:
        """Write the index, after which the rows can be read."""
        self._file.close()
        np.save(self._path.with_suffix(".npy"), np.array(self._lengths, np.int32))


class Ragged:
    """The rows that a RaggedWriter wrote; reading one costs no more than a slice."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.lengths: npt.NDArray[np.int32] = np.load(path.with_suffix(".npy"))
        self._offsets = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        file = path.with_suffix(".bin")
        # A plain array over the mapped bytes: slicing it costs a tenth of slicing a memmap.
        mapped = np.memmap(file, dtype, mode="r") if file.stat().st_size else np.empty(0, dtype)
        self._numbers: Numbers = np.asarray(mapped)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Numbers:
        start = self._offsets[index]
        return self._numbers[start : start + self.lengths[index]]
