"""Arrays of bytes in the idx format, in which MNIST comes: plain, or packed as .gz or .xz."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.data.text_files import unpacked_bytes
from heedful.errors import UserError

UNSIGNED_BYTES = 8


@dataclass(frozen=True)
class IdxFile:
    """An idx file of unsigned bytes: its shape, read from the header, and its items one by one."""

    path: Path
    shape: tuple[int, ...]

    @classmethod
    def open(cls, path: Path) -> "IdxFile":
        """Read the header: two zeros, the type of the values, the number of axes, and the length of each."""
        header = b""
        for block in unpacked_bytes(path):
            header += block
            if len(header) >= 4 and len(header) >= 4 + 4 * header[3]:
                break
        if len(header) < 4 or header[:2] != b"\0\0" or len(header) < 4 + 4 * header[3] or header[3] == 0:
            raise UserError(f"{path} is no idx file: it does not begin with its header")
        if header[2] != UNSIGNED_BYTES:
            raise UserError(f"{path} holds values of type {header[2]}, expected {UNSIGNED_BYTES}: unsigned bytes")
        return cls(path, tuple(int(each) for each in np.frombuffer(header, ">u4", count=header[3], offset=4)))

    def items(self) -> Iterator[NDArray[np.uint8]]:
        """The arrays along the first axis, of which few are in memory at a time."""
        shape = self.shape[1:]
        size, left = math.prod(shape), self.shape[0]
        skip, rest = 4 + 4 * len(self.shape), b""
        for block in unpacked_bytes(self.path):
            rest += block
            if skip:
                skip, rest = max(0, skip - len(rest)), rest[skip:]
            count = min(left, len(rest) // size) if size else 0
            yield from np.frombuffer(rest, np.uint8, count * size).reshape(count, *shape)
            rest, left = rest[count * size :], left - count
        if left or rest:
            raise UserError(
                f"{self.path} does not hold the {self.shape[0]:,} items that its header says: copy it again"
            )
