import random
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.prepared.split import (
    KEY_DTYPE,
    Fate,
    TokenizerSample,
    content_keys,
    decide_fates,
    find_duplicates,
    held_out_sources,
    pair_keys,
    read_keys,
)


def keys_of(pairs: list[tuple[bytes, bytes]]) -> np.ndarray:
    keys = np.zeros(len(pairs), KEY_DTYPE)
    keys["source"] = content_keys([source for source, _ in pairs])
    keys["pair"] = pair_keys(keys["source"], content_keys([target for _, target in pairs]))
    return keys


def test_content_keys_are_the_same_everywhere() -> None:
    assert content_keys([b"", b"dog"]).astype("<u8").tobytes().hex() == "e4a6a0577479b2b43984c7c1d25e9c9f"


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


@pytest.mark.parametrize(("num_pairs", "expected"), [(2, 1), (53, 1), (1009, 20), (200_003, 2000)])
def test_about_two_percent_are_held_out(num_pairs: int, expected: int) -> None:
    keys = np.random.default_rng(7).integers(0, 2**63, num_pairs).astype(np.uint64)
    held_out = held_out_sources(keys)
    assert len(held_out) == expected
    assert held_out.tolist() == sorted(keys.tolist())[:expected]


def test_all_translations_of_a_source_share_its_fate() -> None:
    pairs = [(f"source {i // 3}".encode(), f"target {i}".encode()) for i in range(1511)]
    fates, held_out = decide_fates(keys_of(pairs), hold_out=True)
    by_source: dict[bytes, set[int]] = {}
    for (source, _), fate in zip(pairs, fates.tolist(), strict=True):
        by_source.setdefault(source, set()).add(fate)
    assert all(len(source_fates) == 1 for source_fates in by_source.values())
    assert 30 <= (fates == Fate.HELD_OUT).sum() <= 32
    assert len(held_out) in (10, 11)


def test_a_source_with_very_many_translations_is_not_held_out() -> None:
    keys = np.concatenate([np.zeros(5003, np.uint64), np.arange(1, 5003, dtype=np.uint64)])
    held_out = held_out_sources(keys)
    assert held_out.tolist() == list(range(1, 201))


@pytest.mark.parametrize("sizes", [(2, 2), (1, 997), (997, 1), (3, 2), (2,) * 97, (5, 5, 5), (1, 1, 499, 499)])
def test_however_sources_repeat_both_parts_get_some(sizes: tuple[int, ...]) -> None:
    keys = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    held_out = np.isin(keys, held_out_sources(keys)).sum()
    assert 1 <= held_out <= len(keys) * 3 / 5


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


def sampled(pairs: list[tuple[bytes, bytes]], block_size: int, **bounds: int) -> list[str]:
    sample = TokenizerSample(**bounds)
    for start in range(0, len(pairs), block_size):
        block = pairs[start : start + block_size]
        sample.add(keys_of(block), [source for source, _ in block], [target for _, target in block])
    return list(sample.texts(np.empty(0, np.uint64)))


PAIRS = [(f"source {i}".encode(), f"das Ziel {i}".encode()) for i in range(1009)]


def test_a_small_corpus_is_sampled_whole_and_without_duplicates() -> None:
    assert sorted(sampled(PAIRS * 2, 97)) == sorted(text.decode() for pair in PAIRS for text in pair)


def test_a_sample_is_bounded_and_does_not_depend_on_order() -> None:
    shuffled = PAIRS * 2
    random.Random(3).shuffle(shuffled)
    sample = sampled(PAIRS, 97, max_bytes=5003)
    assert 2000 < sum(len(text.encode()) for text in sample) <= 5003
    assert sample == sampled(shuffled, 31, max_bytes=5003)


def test_a_sample_is_bounded_in_its_distinct_words() -> None:
    sample = sampled(PAIRS, 97, max_word_bytes=503)
    words = {word for text in sample for word in text.split()}
    assert 503 < sum(len(word) for word in words) < 520


def test_a_pair_repeated_for_ever_does_not_fill_the_sample() -> None:
    assert sampled([(b"again", b"wieder")] * 1009, 97, max_bytes=503) == ["again", "wieder"]


def test_held_out_sources_are_not_sampled() -> None:
    sample = TokenizerSample()
    keys = keys_of(PAIRS)
    sample.add(keys, [source for source, _ in PAIRS], [target for _, target in PAIRS])
    texts = set(sample.texts(keys["source"][:7]))
    assert len(texts) == 2 * (1009 - 7)
    assert not texts & {text.decode() for pair in PAIRS[:7] for text in pair}
