import pytest

from heedful.layers.kv_cache import padded_length


@pytest.mark.parametrize(("length", "padded"), [(0, 16), (1, 16), (16, 16), (17, 32), (32, 32), (33, 48)])
def test_padded_length(length: int, padded: int) -> None:
    assert padded_length(length) == padded
