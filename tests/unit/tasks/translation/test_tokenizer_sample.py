import random

import numpy as np

from heedful.prepared.held_out import content_keys
from heedful.tasks.translation.fates import KEY_DTYPE, pair_keys
from heedful.tasks.translation.tokenizer_sample import TokenizerSample


def keys_of(pairs: list[tuple[bytes, bytes]]) -> np.ndarray:
    keys = np.zeros(len(pairs), KEY_DTYPE)
    keys["source"] = content_keys([source for source, _ in pairs])
    keys["pair"] = pair_keys(keys["source"], content_keys([target for _, target in pairs]))
    return keys


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
