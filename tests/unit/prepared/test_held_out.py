import numpy as np
import pytest

from heedful.prepared.held_out import PAIRS_SHARE, content_keys, held_out_keys


def test_content_keys_are_the_same_everywhere() -> None:
    assert content_keys([b"", b"dog"]).astype("<u8").tobytes().hex() == "e4a6a0577479b2b43984c7c1d25e9c9f"


@pytest.mark.parametrize(("num_pairs", "expected"), [(2, 1), (53, 1), (1009, 20), (200_003, 2000)])
def test_about_two_percent_are_held_out(num_pairs: int, expected: int) -> None:
    keys = np.random.default_rng(7).integers(0, 2**63, num_pairs).astype(np.uint64)
    held_out = held_out_keys(keys, PAIRS_SHARE)
    assert len(held_out) == expected
    assert held_out.tolist() == sorted(keys.tolist())[:expected]


def test_a_source_with_very_many_translations_is_not_held_out() -> None:
    keys = np.concatenate([np.zeros(5003, np.uint64), np.arange(1, 5003, dtype=np.uint64)])
    held_out = held_out_keys(keys, PAIRS_SHARE)
    assert held_out.tolist() == list(range(1, 201))


@pytest.mark.parametrize("sizes", [(2, 2), (1, 997), (997, 1), (3, 2), (2,) * 97, (5, 5, 5), (1, 1, 499, 499)])
def test_however_sources_repeat_both_parts_get_some(sizes: tuple[int, ...]) -> None:
    keys = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    held_out = np.isin(keys, held_out_keys(keys, PAIRS_SHARE)).sum()
    assert 1 <= held_out <= len(keys) * 3 / 5
