"""The checksum that a file of weights holds in its own header, so that the file is right or wrong by itself.

The weights of a model are replaced in one step, by a run that goes on while others load them: a checksum in another
file would be wrong for a moment each time, and for good if the run were killed then.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

from heedful.errors import UserError

# In the metadata of the file: its own checksum, taken with a blank one in its place, that of the tokenizer's file, and
# that of the model's settings.
OWN, OF_TOKENIZER, OF_SETTINGS = "crc32", "tokenizer_crc32", "settings_crc32"
BLANK = "0" * 8
# Bytes that are read at a time: few enough to stay in the processor's cache while they are summed up.
BLOCK = 1 << 18


def checksum_of(content: bytes) -> str:
    """The CRC-32 of some bytes, as it is written down."""
    return f"{zlib.crc32(content):08x}"


def unsealed(tokenizer: bytes | None, settings: bytes | None = None) -> dict[str, str]:
    """The metadata for a file that is to be sealed, of a model with that tokenizer.json and those settings."""
    parts = {OF_TOKENIZER: tokenizer, OF_SETTINGS: settings}
    return {"format": "pt", OWN: BLANK, **{key: checksum_of(part) for key, part in parts.items() if part is not None}}


def seal(path: Path) -> str:
    """Write its checksum into a safetensors file that was written with the metadata of `unsealed`, and return it."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        # The library writes the metadata in any order, and the same weights must be the same bytes.
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        blank = _written(header, size)
        header["__metadata__"][OWN] = checksum = _sum_up(file, size, blank)
        file.seek(8)
        file.write(_written(header, size))
    return checksum


def is_sealed(
    file: BinaryIO, size: int, metadata: Mapping[str, str], with_data: Callable[[int], int] | None = None
) -> bool:
    """Whether an open file, with a header of this many bytes, has the checksum that it says it has, if it says any.

    A caller that has already read the data gives `with_data`, which takes the checksum of everything before the data
    and returns that of the file.
    """
    if OWN not in metadata:  # an earlier heedful wrote it, or somebody else
        return True
    file.seek(8)
    own, blank = (f'"{OWN}":"{each}"'.encode(errors="replace") for each in (metadata[OWN], BLANK))
    header = file.read(size).replace(own, blank, 1)
    return _sum_up(file, size, header, with_data) == metadata[OWN]


def check_seal(
    file: BinaryIO, path: Path, size: int, metadata: Mapping[str, str], with_data: Callable[[int], int] | None = None
) -> None:
    """Raise a UserError unless `is_sealed` holds for an open file of weights."""
    if not is_sealed(file, size, metadata, with_data):
        raise UserError(
            f"{path} is damaged: it does not have the checksum that was written with it; put back a copy of it, or "
            "give the command that trained or imported the model again"
        )


def _written(header: dict[str, object], size: int) -> bytes:
    written = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode().ljust(size)
    assert len(written) == size, "the library writes a header without white space"
    return written


def _sum_up(file: BinaryIO, size: int, header: bytes, with_data: Callable[[int], int] | None = None) -> str:
    """The checksum that a file has with that header."""
    crc = zlib.crc32(header, zlib.crc32(size.to_bytes(8, "little")))
    if with_data is not None:
        return f"{with_data(crc):08x}"
    block = memoryview(bytearray(BLOCK))
    file.seek(8 + size)
    while count := file.readinto(block):  # type: ignore[attr-defined]
        crc = zlib.crc32(block[:count], crc)
    return f"{crc:08x}"
