"""Weights as text and back."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.inspection.attention.weights import ALPHABET, from_codes, pack, rounded, to_codes


def unpack(packed: dict) -> np.ndarray:
    """What the page does, as slowly and as plainly as possible."""
    bits = ""
    for one, other in zip(packed["text"][::2], packed["text"][1::2], strict=True):
        bits += f"{ALPHABET.index(one) * 91 + ALPHABET.index(other):013b}"
    data = bytes(int(bits[place : place + 8], 2) for place in range(0, packed["bytes"] * 8, 8))
    planes = zlib.decompress(data)
    half = len(planes) // 2
    return np.array([low + 256 * high for low, high in zip(planes[:half], planes[half:], strict=True)], dtype=np.uint16)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 13, 100, 1009])
def test_what_is_packed_can_be_unpacked(count: int) -> None:
    codes = np.random.default_rng(count).integers(0, 18901, count, dtype=np.uint16)
    packed = pack(codes)
    assert np.array_equal(unpack(packed), codes)
    assert not set(packed["text"]) & set('<"\\')


@given(st.floats(1e-20, 1.0))
def test_three_significant_digits_are_those_that_python_writes(weight: float) -> None:
    found = float(rounded(np.array(weight)))
    # Halfway between two numbers of three digits either is right.
    assert found == float(f"{weight:.2e}") or abs(found - weight) <= 0.00500001 * weight
    assert found == float(f"{found:.2e}")
    assert repr(found) == repr(float(f"{found:.2e}"))


def test_zero_one_and_what_lies_beside_them() -> None:
    weights = np.array([0.0, 1e-21, 1e-20, 0.0009996, 0.09995, 0.9996, 1.0, np.float32(1.0000001)])
    expected = [0.0, 0.0, 1e-20, 0.001, 0.1, 1.0, 1.0, 1.0]
    assert rounded(weights).tolist() == expected
    assert int(to_codes(weights).max()) < 2**15
    every = np.arange(1 + 21 * 900, dtype=np.uint16)
    assert np.array_equal(to_codes(from_codes(every)[:101]), every[:101])  # above 1 there is nothing
    assert np.array_equal(to_codes(from_codes(every)[901:]), every[901:])
