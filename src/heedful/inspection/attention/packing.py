"""Arrays of small numbers as short text: their bytes deflated, and 13 bits in two characters.

Base64 would need a third more than the bytes; this needs less than a quarter more, and none of its characters has a
meaning in HTML or in a JSON string.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

# 91 characters: 91 x 91 is just above 2^13.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"<\\')
BITS = 13


def pack(codes: NDArray[np.uint16]) -> dict[str, Any]:
    """Numbers as text, and how many bytes that text stands for.

    All low bytes come before all high bytes: the former are as good as random, and the latter pack well by themselves.
    """
    flat = codes.ravel()
    planes = np.concatenate([flat & 0xFF, flat >> 8]).astype(np.uint8)
    # Weights hardly repeat but for runs of zeros: looking for more would make the text longer.
    deflate = zlib.compressobj(strategy=zlib.Z_RLE)
    data = deflate.compress(planes.tobytes()) + deflate.flush()
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    groups = np.pad(bits, (0, -len(bits) % BITS)).reshape(-1, BITS)
    numbers = groups.astype(np.int32) @ (1 << np.arange(BITS - 1, -1, -1, dtype=np.int32))
    letters = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)
    pairs = np.stack(np.divmod(numbers, len(ALPHABET)), axis=1)
    return {"bytes": len(data), "text": letters[pairs].tobytes().decode("ascii")}
