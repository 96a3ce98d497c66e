"""Arrays of bytes in the idx format, the format of MNIST: plain, or packed as .gz or .xz."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UserError
from heedful.text.text_files import unpacked_bytes

UNSIGNED_BYTES = 8
# By the first bytes of a packed file, the most times its size that it can unpack to.
_BEST_PACKING = {b"\x1f\x8b": 1_100, b"\xfd7": 10_000}


@dataclass(frozen=True)
class IdxFile:
    """An idx file of unsigned bytes: its shape, read from the header, and its items one by one."""

    path: Path
    shape: tuple[int, ...]

    @classmethod
    def open(cls, path: Path) -> "IdxFile":
        """Read the header: two zeros, the type of the values, the number of axes, and the length of each."""
        header = b"".join(islice(unpacked_bytes(path), 1))  # a block holds more than the longest header
        if len(header) < 4 or header[:2] != b"\0\0" or len(header) < 4 + 4 * header[3] or header[3] == 0:
            raise UserError(f"{path} is not an idx file: it does not begin with its header")
        if header[2] != UNSIGNED_BYTES:
            raise UserError(f"{path} holds values of type {header[2]}, expected {UNSIGNED_BYTES}: unsigned bytes")
        return cls(path, tuple(int(each) for each in np.frombuffer(header, ">u4", count=header[3], offset=4)))

    def __len__(self) -> int:
        return self.shape[0]

    def check_size(self) -> None:
        """Raise a UserError if the file cannot hold what its header says, however well it is packed."""
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            start = file.read(2)
        most = next((ratio * size for magic, ratio in _BEST_PACKING.items() if start == magic), size)
        expected = 4 + 4 * len(self.shape) + math.prod(self.shape)
        if expected > most or (most == size and expected != size):
            raise self._other_size()

    def items(self) -> Iterator[NDArray[np.uint8]]:
        """The arrays along the first axis, only a few of which are in memory at a time."""
        shape = self.shape[1:]
        size, left = math.prod(shape), self.shape[0]
        skip, rest = 4 + 4 * len(self.shape), bytearray()
        for block in unpacked_bytes(self.path):
            rest += block[skip:]
            skip = max(0, skip - len(block))
            count = min(left, len(rest) // size) if size else 0
            yield from np.frombuffer(bytes(rest[: count * size]), np.uint8).reshape(count, *shape)
            del rest[: count * size]
            left -= count
            if rest and not (left and size):  # more than there should be
                break
        if left or rest:
            raise self._other_size()

    def _other_size(self) -> UserError:
        return UserError(f"{self.path} does not hold the {self.shape[0]:,} items that its header says: copy it again")
