"""A tensor's numbers as text, in 16 bits each: half precision, times a power of two chosen for the tensor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.inspection.attention.weights import pack

# The largest number of a tensor is scaled to 2^14 .. 2^15, so that those 2^28 times smaller still have all their bits.
LARGEST_POWER = 15


def to_halves(values: NDArray[np.floating]) -> tuple[NDArray[np.float16], int]:
    """Half-precision numbers, and the power of two that they were multiplied by; -inf stays -inf."""
    exact = np.asarray(values, np.float64)
    finite = np.abs(exact[np.isfinite(exact)])
    largest = float(finite.max()) if finite.size else 0.0
    power = LARGEST_POWER - int(np.frexp(largest)[1]) if largest > 0 else 0
    return np.ldexp(exact, power).astype(np.float16), power


def packed_floats(values: NDArray[np.floating]) -> dict[str, Any]:
    """An array as text, with the power of two to divide by."""
    halves, power = to_halves(values)
    return {"power": power, **pack(halves.view(np.uint16))}


def from_halves(halves: NDArray[np.float16], power: int) -> NDArray[np.float64]:
    """The numbers that `to_halves` stands for."""
    return np.ldexp(halves.astype(np.float64), -power)
