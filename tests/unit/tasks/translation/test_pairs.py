from pathlib import Path

import numpy as np
import pytest

from heedful.prepared.ragged import token_dtype
from heedful.tasks.translation.pairs import PairsWriter, PreparedPairs
from heedful.text.tokenizer import Tokenizer


def write_blocks(
    folder: Path, vocabulary_size: int, rows: list[tuple[list[int], list[int]]], chosen: list[bool]
) -> None:
    writer = PairsWriter(folder, vocabulary_size)
    for start in range(0, len(rows), 3):
        block = rows[start : start + 3]
        sides = [source for source, _ in block] + [target for _, target in block]
        ids = np.array([i for side in sides for i in side], np.uint32)
        writer.write(ids, np.array([len(side) for side in sides], np.int32), np.array(chosen[start : start + 3]))
    writer.close()
    kept = [row for row, keep in zip(rows, chosen, strict=True) if keep]
    assert writer.num_pairs == len(kept)
    assert writer.num_tokens == sum(len(source) + len(target) for source, target in kept)


@pytest.mark.parametrize("vocabulary_size", [499, 65_536, 65_537, 100_003])
def test_what_was_chosen_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vocabulary_size: int) -> None:
    rng = np.random.default_rng(3)
    rows = [tuple(rng.integers(3, vocabulary_size, rng.integers(1, 8)).tolist() for _ in range(2)) for _ in range(11)]
    rows[4] = ([vocabulary_size - 1], [3])
    chosen = [True, False, True, False, True, True, False, False, False, True, True]
    write_blocks(tmp_path / "part", vocabulary_size, rows, chosen)
    tokenizer = Tokenizer.train(["abc"], 299)
    monkeypatch.setattr(tokenizer, "vocabulary_size", vocabulary_size)
    prepared = PreparedPairs(tmp_path / "part", tokenizer)
    kept = [row for row, keep in zip(rows, chosen, strict=True) if keep]
    assert len(prepared) == len(kept) == 6
    assert [(prepared.source(i).tolist(), prepared.target(i).tolist()) for i in range(6)] == kept
    assert prepared.source_lengths.tolist() == [len(source) for source, _ in kept]
    assert prepared.target_lengths.tolist() == [len(target) for _, target in kept]
    assert prepared.source_lengths.dtype == prepared.target_lengths.dtype == np.int32
    assert prepared.source(0).dtype == (np.uint16 if vocabulary_size <= 65_536 else np.uint32)
    assert prepared.source(-1).tolist() == kept[-1][0]
    with pytest.raises(IndexError):
        prepared.target(6)


def test_nothing_chosen_is_an_empty_part(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_blocks(tmp_path / "part", tokenizer.vocabulary_size, [([5], [7])], [False])
    assert len(PreparedPairs(tmp_path / "part", tokenizer)) == 0


def test_texts_are_decoded(tmp_path: Path, tokenizer: Tokenizer) -> None:
    rows = [
        (tokenizer.encode("the dog"), tokenizer.encode("der Hund")),
        (tokenizer.encode("a"), tokenizer.encode("ein")),
    ]
    write_blocks(tmp_path / "part", tokenizer.vocabulary_size, rows, [True, True])
    prepared = PreparedPairs(tmp_path / "part", tokenizer)
    assert (prepared.source_text(1), prepared.target_text(0)) == ("a", "der Hund")


def test_tokens_are_mapped_and_not_loaded(tmp_path: Path, tokenizer: Tokenizer) -> None:
    write_blocks(tmp_path / "part", tokenizer.vocabulary_size, [([5, 6], [7])], [True])
    source = PreparedPairs(tmp_path / "part", tokenizer).source(0)
    base = source
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert isinstance(base, np.memmap)
    assert type(source) is np.ndarray
    assert not source.flags.writeable
    assert token_dtype(65_536) is np.uint16
