"""Attention weights in numbers: how spread out they are, how far they look, and how to write them in few characters."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from heedful.inspection.attention.maps import Positions


def entropy(weights_HTS: NDArray[np.float32]) -> NDArray[np.float64]:
    """The entropy H of each head's weights in nats, a mean over queries: 0 means one key, log S all S alike."""
    weights = weights_HTS.astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logs).sum(-1).mean(-1)


def mean_distance(weights_HTS: NDArray[np.float32], queries: Positions, keys: Positions) -> NDArray[np.float64]:
    """How far away each head H looks, a mean over queries; positions without a place do not count."""
    distances_TS = np.linalg.norm(queries.places[:, None] - keys.places[None], axis=-1)
    known_TS = ~np.isnan(distances_TS)
    weights = weights_HTS * known_TS
    totals_HT = weights.sum(-1, dtype=np.float64)
    counted = totals_HT > 0
    far_HT = (weights * np.where(known_TS, distances_TS, 0.0)).sum(-1) / np.where(counted, totals_HT, 1.0)
    return far_HT.sum(-1) / np.maximum(counted.sum(-1), 1)


# 91 characters: 91 x 91 is just above 2^13.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"<\\')
BITS = 13


def pack(codes: NDArray[np.uint16]) -> dict[str, Any]:
    """Numbers as text, and the number of bytes that the text stands for.

    All low bytes come before all high bytes: the former are nearly random, and the latter pack well by themselves.
    """
    flat = codes.ravel()
    planes = np.concatenate([flat & 0xFF, flat >> 8]).astype(np.uint8)
    # Weights hardly repeat except for runs of zeros: looking for more would make the text longer.
    deflate = zlib.compressobj(strategy=zlib.Z_RLE)
    data = deflate.compress(planes.tobytes()) + deflate.flush()
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    groups = np.pad(bits, (0, -len(bits) % BITS)).reshape(-1, BITS)
    numbers = groups.astype(np.int32) @ (1 << np.arange(BITS - 1, -1, -1, dtype=np.int32))
    letters = np.frombuffer(ALPHABET.encode("ascii"), np.uint8)
    pairs = np.stack(np.divmod(numbers, len(ALPHABET)), axis=1)
    return {"bytes": len(data), "text": letters[pairs].tobytes().decode("ascii")}


# A weight is MANTISSA / 10^EXPONENT: 100 / 10^2 is 1, and the smallest that is not 0 is 100 / 10^22.
SMALLEST_MANTISSA, MANTISSAS = 100, 900
FIRST_EXPONENT, LAST_EXPONENT = 2, 22


def to_codes(weights: NDArray[np.floating]) -> NDArray[np.uint16]:
    """A number for each weight from 0 to 1: 0 for zero, otherwise a count of mantissas within exponents."""
    exact = np.asarray(weights, np.float64)
    there = exact >= 10.0**-20
    size = np.where(there, exact, 1.0)
    exponents = FIRST_EXPONENT - np.floor(np.log10(size)).astype(np.int64)
    mantissas = np.rint(size * 10.0**exponents).astype(np.int64)
    carried = mantissas >= SMALLEST_MANTISSA + MANTISSAS
    exponents, mantissas = exponents - carried, np.where(carried, SMALLEST_MANTISSA, mantissas)
    # A rounding error may leave weights slightly above 1.
    exponents = np.clip(exponents, FIRST_EXPONENT, LAST_EXPONENT)
    codes = 1 + MANTISSAS * (exponents - FIRST_EXPONENT) + mantissas - SMALLEST_MANTISSA
    return np.where(there, codes, 0).astype(np.uint16)


def from_codes(codes: NDArray[np.uint16]) -> NDArray[np.float64]:
    """The weights that codes of `to_codes` stand for, each the nearest number to its three decimal digits."""
    exponents, mantissas = np.divmod(codes.astype(np.int64) - 1, MANTISSAS)
    # Divided, not multiplied: both operands are exact, so the quotient is the number nearest to those digits.
    return np.where(codes > 0, (mantissas + SMALLEST_MANTISSA) / 10.0 ** (exponents + FIRST_EXPONENT), 0.0)


def rounded(weights: NDArray[np.floating]) -> NDArray[np.float64]:
    """The weights to three significant digits; those below 10^-20 become 0."""
    return from_codes(to_codes(weights))
