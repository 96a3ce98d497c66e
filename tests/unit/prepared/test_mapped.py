"""Mapped files: what is read is what was written, and reading all of it leaves little of it resident."""

import sys
from pathlib import Path

import numpy as np
import pytest

from heedful.prepared import mapped as mapped_module
from heedful.prepared.mapped import ROWS_UNTIL_RELEASE, ResidentPages, mapped_array, mapped_numbers

ROWS, WIDTH = 6_007, 4_096


def resident_file_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssFile")).split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is told by Linux in this way")
def test_reading_at_random_keeps_few_pages_resident(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_module, "ROWS_UNTIL_RELEASE", 4)
    (tmp_path / "numbers.bin").write_bytes(np.arange(ROWS * WIDTH, dtype=np.uint16).tobytes())
    numbers = mapped_numbers(tmp_path / "numbers.bin", np.uint16)
    pages = ResidentPages(numbers)
    before, most = resident_file_bytes(), 0
    for count, row in enumerate(np.random.default_rng(1).permutation(ROWS).tolist(), 1):
        pages.read(1)
        assert numbers[row * WIDTH + 7] == (row * WIDTH + 7) % 2**16
        if count % 17 == 0:
            most = max(most, resident_file_bytes() - before)
    # A row brings in up to 2 MB, so that there are 8 MB between releases. Without them, all of the 49 MB are there.
    assert most < 20_000_000
    pages.read(4)
    assert resident_file_bytes() - before < 2_000_000


def test_arrays_that_are_not_mapped_are_left_alone(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(11))
    np.save(tmp_path / "empty.npy", np.arange(0))
    mapped, empty = mapped_array(tmp_path / "a.npy"), mapped_array(tmp_path / "empty.npy")
    pages = ResidentPages(np.arange(7), mapped, empty)
    pages.read(ROWS_UNTIL_RELEASE)
    assert mapped.tolist() == [*range(11)] and len(empty) == 0
