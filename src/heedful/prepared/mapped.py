"""Arrays in files that are mapped into memory, with few pages staying resident."""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

# Reading a row brings in 64 KB, or as much as 2 MB where the system's cache has pages of that size.
ROWS_UNTIL_RELEASE = 64


def mapped_numbers(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The numbers in a file, mapped into memory."""
    if path.stat().st_size == 0:  # nothing to map
        return np.empty(0, dtype)
    # A plain array over the mapped bytes: slicing it costs a tenth of slicing a memmap.
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))


def mapped_array(path: Path) -> npt.NDArray[Any]:
    """The array that `np.save` wrote, mapped into memory."""
    return np.asarray(np.load(path, mmap_mode="r"))


class ResidentPages:
    """Gives the pages of mapped arrays back to the system after every `ROWS_UNTIL_RELEASE` rows read from them.

    Without that, all of a corpus ends up in the resident memory of a process that reads at random. The pages stay in
    the system's cache, from which they are mapped again.
    """

    def __init__(self, *arrays: npt.NDArray[Any]) -> None:
        found = (_mapping(array) for array in arrays)
        self._mappings = [each for each in found if each is not None]
        self._rows = 0

    def read(self, rows: int) -> None:
        """Count rows that are about to be read."""
        self._rows += rows
        if self._rows >= ROWS_UNTIL_RELEASE:
            self._rows = 0
            for each in self._mappings:
                each.madvise(mmap.MADV_DONTNEED)


def _mapping(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """The mapping of an array, if it has one and the system takes advice about it."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED") else None
