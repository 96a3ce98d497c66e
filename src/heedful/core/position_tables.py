"""The engine's data for positions: tables, slopes and biases, computed as the layers compute them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def rotary_tables(config: Any, head_width: int, trained: int, length: int) -> dict[str, NDArray[np.float32]]:
    """Cosines and sines of the angles of each position, L K/2; longer texts are squeezed into the trained length."""
    base, scaling = config.base, config.scaling
    if scaling is not None:
        base = scaling.base(base, head_width)
    rates = np.exp(np.arange(0, head_width, 2, dtype=np.float64) * (-math.log(base) / head_width))
    if scaling is not None:
        rates = _scaled(rates, scaling)
    angles = np.arange(length, dtype=np.float64)[:, None] * min(1.0, trained / length) * rates
    return {"cosines": np.cos(angles).astype(np.float32), "sines": np.sin(angles).astype(np.float32)}


def _scaled(rates: NDArray[np.float64], scaling: Any) -> NDArray[np.float64]:
    if scaling.kind == "ntk":
        return rates
    if scaling.kind == "linear":
        return rates / scaling.factor
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    turns = scaling.original_length * rates / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return np.asarray(kept * rates + (1 - kept) * rates / scaling.factor)


def interpolated(table_LD: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """A learned table for another length: its rows spread evenly, with straight lines between them."""
    if length == len(table_LD):
        return table_LD
    # In float32, as torch computes them: otherwise rows that differ much would differ in the last bit.
    step = np.float32(len(table_LD) - 1) / np.float32(max(1, length - 1))
    places = np.arange(length, dtype=np.float32) * step
    below = np.minimum(places.astype(np.int64), len(table_LD) - 1)
    above = np.minimum(below + 1, len(table_LD) - 1)
    share = (places - below).astype(np.float32)[:, None]
    return np.asarray(table_LD[below] * (1 - share) + table_LD[above] * share, np.float32)


def alibi_slopes(num_heads: int) -> NDArray[np.float32]:
    """A geometric sequence from 2^(-8/H) to 2^-8; between powers of two, every other slope of the next is added."""
    largest_power = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * (head + 1) / largest_power) for head in range(largest_power)]
    between = [2 ** (-8 * (head + 1) / (2 * largest_power)) for head in range(0, 2 * largest_power, 2)]
    return np.array(slopes + between[: num_heads - largest_power], np.float32)


def biases_by_distance(biases_XH: NDArray[np.float32], max_distance: int, *, causal: bool) -> NDArray[np.float32]:
    """The bias of each head H at each distance from -max_distance to max_distance, from the biases of the buckets X."""
    distances = np.arange(-max_distance, max_distance + 1)
    buckets = relative_buckets(distances, len(biases_XH), max_distance, causal=causal)
    return np.ascontiguousarray(biases_XH[buckets].T)


def relative_buckets(
    distances: NDArray[np.int64], num_buckets: int, max_distance: int, *, causal: bool
) -> NDArray[np.int64]:
    """The bucket of each distance: the nearest have one each, the others share by the logarithm of the distance."""
    first: NDArray[np.int64] = np.zeros_like(distances)
    away = np.maximum(-distances, 0)
    if not causal:
        num_buckets //= 2
        first, away = (distances > 0) * num_buckets, np.abs(distances)
    exact = num_buckets // 2
    nearest = np.maximum(away, 1).astype(np.float32)
    share = np.log(nearest / np.float32(exact)) / np.float32(math.log(max_distance / exact))
    shared = np.minimum(exact + (share * (num_buckets - exact)).astype(np.int64), num_buckets - 1)
    return first + np.where(away < exact, away, shared)
