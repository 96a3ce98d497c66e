"""Tables of positions without torch: the same numbers as the layers have."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.core import position_tables
from heedful.layers.positions import RotaryPositions
from heedful.layers.positions.alibi import alibi_slopes
from heedful.layers.positions.relative_buckets import relative_buckets
from heedful.settings.position_scheme import PositionSizes
from heedful.settings.rotary import RotaryConfig, RotaryScaling


@pytest.mark.parametrize("num_heads", [*range(1, 38), 61, 64, 67, 128])
def test_slopes(num_heads: int) -> None:
    assert np.array_equal(position_tables.alibi_slopes(num_heads), np.array(alibi_slopes(num_heads), np.float32))


def both_buckets(distances: np.ndarray, num_buckets: int, max_distance: int, causal: bool) -> list[np.ndarray]:
    found = position_tables.relative_buckets(distances, num_buckets, max_distance, causal=causal)
    expected = relative_buckets(torch.from_numpy(distances), num_buckets, max_distance, causal=causal)
    return [found, expected.numpy()]


@pytest.mark.parametrize("causal", [False, True])
def test_buckets_of_all_usual_settings(causal: bool) -> None:
    for num_buckets in (4, 6, 8, 10, 14, 16, 22, 26, 32, 34, 64, 128, 256):
        for max_distance in {num_buckets, num_buckets + 1, 2 * num_buckets, 97, 128, 256, 512, 1024, 4096}:
            if max_distance >= num_buckets:
                distances = np.arange(-max_distance - 3, max_distance + 4)
                assert np.array_equal(*both_buckets(distances, num_buckets, max_distance, causal))


@given(half=st.integers(2, 150), more=st.integers(0, 20_000), causal=st.booleans())
@example(half=54, more=294 - 108, causal=True)
def test_buckets_of_any_settings(half: int, more: int, causal: bool) -> None:
    """A distance may lie so near the border of two buckets that the last bit of a logarithm decides."""
    num_buckets, max_distance = 2 * half, 2 * half + more
    distances = np.arange(-max_distance - 3, max_distance + 4)
    found, expected = both_buckets(distances, num_buckets, max_distance, causal)
    wrong = distances[found != expected]
    own = num_buckets if causal else half
    exact = own // 2
    shares = np.log(np.abs(wrong) / exact) / math.log(max_distance / exact) * (own - exact)
    assert (np.abs(shares - np.rint(shares)) < 1e-4).all()
    assert (np.abs(found - expected) <= 1).all() and len(wrong) <= 2


@pytest.mark.parametrize("before", [1, 2, 3, 7, 16, 64, 1000])
@pytest.mark.parametrize("after", [1, 2, 5, 16, 63, 64, 65, 127, 1013, 4099])
def test_interpolation(before: int, after: int) -> None:
    table = np.random.default_rng(1).standard_normal((before, 5)).astype(np.float32)
    expected = torch.from_numpy(table)
    if after != before:
        expected = F.interpolate(expected.T[None], size=after, mode="linear", align_corners=True)[0].T
    found = position_tables.interpolated(table, after)
    assert found.dtype == np.float32 and found.shape == (after, 5)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)


SCALINGS = [
    None,
    RotaryScaling("linear", 3.0),
    RotaryScaling("ntk", 5.0),
    RotaryScaling("llama3", 7.0, original_length=23),
    RotaryScaling("llama3", 8.0, 1.0, 4.0, 8192),
]


@pytest.mark.parametrize("scaling", SCALINGS, ids=str)
@pytest.mark.parametrize("width", [2, 6, 26, 128])
@pytest.mark.parametrize("length", [7, 31, 61])
def test_rotary_tables(scaling: RotaryScaling | None, width: int, length: int) -> None:
    config = RotaryConfig(base=503.0, scaling=scaling)
    layer = RotaryPositions(PositionSizes(width, width, 31), config)
    layer.resize(length)
    found = position_tables.rotary_tables(config, width, 31, length)
    np.testing.assert_allclose(found["cosines"], layer.cosines.numpy(), atol=1e-7)
    np.testing.assert_allclose(found["sines"], layer.sines.numpy(), atol=1e-7)
    assert math.isclose(found["cosines"][0, 0], 1.0)
