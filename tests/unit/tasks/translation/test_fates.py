import random
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.prepared.held_out import content_keys
from heedful.tasks.translation.fates import KEY_DTYPE, Fate, decide_fates, find_duplicates, pair_keys, read_keys


def keys_of(pairs: list[tuple[bytes, bytes]]) -> np.ndarray:
    keys = np.zeros(len(pairs), KEY_DTYPE)
    keys["source"] = content_keys([source for source, _ in pairs])
    keys["pair"] = pair_keys(keys["source"], content_keys([target for _, target in pairs]))
    return keys


def test_pair_keys_tell_the_sides_apart() -> None:
    keys = keys_of([(b"a", b"b"), (b"b", b"a"), (b"a", b"b"), (b"a", b"c")])["pair"].tolist()
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3


def test_all_but_the_first_of_equal_keys_are_duplicates() -> None:
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 701, 1009).astype(np.uint64)
    seen: set[int] = set()
    expected = [key in seen or bool(seen.add(key)) for key in keys.tolist()]
    assert find_duplicates(keys).tolist() == expected
    assert not find_duplicates(np.arange(7, dtype=np.uint64)).any()
    assert find_duplicates(np.zeros(3, np.uint64)).tolist() == [False, True, True]


def test_all_translations_of_a_source_share_its_fate() -> None:
    pairs = [(f"source {i // 3}".encode(), f"target {i}".encode()) for i in range(1511)]
    fates, held_out = decide_fates(keys_of(pairs), hold_out=True)
    by_source: dict[bytes, set[int]] = {}
    for (source, _), fate in zip(pairs, fates.tolist(), strict=True):
        by_source.setdefault(source, set()).add(fate)
    assert all(len(source_fates) == 1 for source_fates in by_source.values())
    assert 30 <= (fates == Fate.HELD_OUT).sum() <= 32
    assert len(held_out) in (10, 11)


def test_the_split_does_not_depend_on_order_or_duplicates() -> None:
    pairs = [(f"source {i}".encode(), f"target {i}".encode()) for i in range(503)]
    shuffled = pairs * 2
    random.Random(5).shuffle(shuffled)
    split = []
    for some_pairs in (pairs, shuffled):
        fates, _ = decide_fates(keys_of(some_pairs), hold_out=True)
        split.append({pair for pair, fate in zip(some_pairs, fates.tolist(), strict=True) if fate == Fate.HELD_OUT})
        assert (fates == Fate.DUPLICATE).sum() == len(some_pairs) - 503
    assert split[0] == split[1]
    assert len(split[0]) == 10


def test_nothing_is_held_out_when_validation_files_are_given() -> None:
    fates, held_out = decide_fates(keys_of([(b"a", b"b"), (b"a", b"b"), (b"c", b"d")]), hold_out=False)
    assert fates.tolist() == [Fate.TRAIN, Fate.DUPLICATE, Fate.TRAIN]
    assert len(held_out) == 0


def test_a_single_source_cannot_be_split() -> None:
    with pytest.raises(UserError, match="single distinct source"):
        decide_fates(keys_of([(b"a", b"b"), (b"a", b"c")]), hold_out=True)


def test_keys_are_read_from_their_file(tmp_path: Path) -> None:
    keys = keys_of([(b"a", b"b"), (b"c", b"d")])
    (tmp_path / "keys").write_bytes(keys.tobytes())
    assert read_keys(tmp_path / "keys").tolist() == keys.tolist()
    (tmp_path / "none").touch()
    assert len(read_keys(tmp_path / "none")) == 0
