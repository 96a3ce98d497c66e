import pytest

from heedful.layers.kv_cache import padded_length


@pytest.mark.parametrize(("length", "padded"), [(1, 16), (16, 16), (17, 24), (24, 24), (25, 32)])
def test_padded_length(length: int, padded: int) -> None:
    assert padded_length(length) == padded
