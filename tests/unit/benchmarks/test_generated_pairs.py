"""The generated corpus: written in bulk as it would be word by word, with the faults that it promises."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks import generated_pairs


def test_lines_made_in_bulk_are_those_made_word_by_word() -> None:
    words = ["ba", "dü", "mouse", "kröte", "z"]
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 7, 53)
    ranks = rng.integers(0, len(words), counts.sum())
    drawn = iter(ranks.tolist())
    expected = [" ".join(words[next(drawn)] for _ in range(count)) for count in counts]
    found = generated_pairs.Words.of(words).lines(ranks, counts)
    assert [line.decode() for line in found] == [f"{line[0].upper()}{line[1:]}." for line in expected]


def test_files_are_aligned_and_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated_pairs, "VOCABULARY", 1009)
    monkeypatch.setattr(generated_pairs, "PAIRS_TOGETHER", 997)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        generated_pairs.write_pairs(tmp_path / name, 5003)
    lines = {}
    for side in ("train.xx", "train.yy"):
        content = (tmp_path / "one" / side).read_bytes()
        assert content == (tmp_path / "two" / side).read_bytes()
        lines[side] = content.split(b"\n")[:-1]
        assert len(lines[side]) == 5003
    pairs = list(zip(*lines.values(), strict=True))
    assert 20 < sum(first == second for first, second in pairwise(pairs)) < 90
    assert any(not target for _, target in pairs) or any(b"\xff" in source for source, _ in pairs)
