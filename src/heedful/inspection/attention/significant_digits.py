"""Weights to three significant digits, as small whole numbers that can be packed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# A weight is MANTISSA / 10^EXPONENT: 100 / 10^2 is 1, and the smallest that is not 0 is 100 / 10^22.
SMALLEST_MANTISSA, MANTISSAS = 100, 900
FIRST_EXPONENT, LAST_EXPONENT = 2, 22


def to_codes(weights: NDArray[np.floating]) -> NDArray[np.uint16]:
    """A number for each weight from 0 to 1: 0 for zero, else one that counts mantissas within exponents."""
    exact = np.asarray(weights, np.float64)
    there = exact >= 10.0**-20
    size = np.where(there, exact, 1.0)
    exponents = FIRST_EXPONENT - np.floor(np.log10(size)).astype(np.int64)
    mantissas = np.rint(size * 10.0**exponents).astype(np.int64)
    carried = mantissas >= SMALLEST_MANTISSA + MANTISSAS
    exponents, mantissas = exponents - carried, np.where(carried, SMALLEST_MANTISSA, mantissas)
    # A rounding error may leave weights that lie above 1 by a hair.
    exponents = np.clip(exponents, FIRST_EXPONENT, LAST_EXPONENT)
    codes = 1 + MANTISSAS * (exponents - FIRST_EXPONENT) + mantissas - SMALLEST_MANTISSA
    return np.where(there, codes, 0).astype(np.uint16)


def from_codes(codes: NDArray[np.uint16]) -> NDArray[np.float64]:
    """The weights that `to_codes` stands for, each the nearest number to its three decimal digits."""
    exponents, mantissas = np.divmod(codes.astype(np.int64) - 1, MANTISSAS)
    # Divided, not multiplied: both sides are exact, so that the quotient is the number that is written so.
    return np.where(codes > 0, (mantissas + SMALLEST_MANTISSA) / 10.0 ** (exponents + FIRST_EXPONENT), 0.0)


def rounded(weights: NDArray[np.floating]) -> NDArray[np.float64]:
    """The weights to three significant digits; what is below 10^-20 is 0."""
    return from_codes(to_codes(weights))
