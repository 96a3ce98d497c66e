from pathlib import Path

import numpy as np

from heedful.prepared.ragged import Ragged, RaggedFiles, RaggedWriter


def test_rows_come_back(tmp_path: Path) -> None:
    rows = [[3, 1, 4], [], [1, 5, 9, 2, 6], [-7]]
    writer = RaggedWriter(RaggedFiles.beside(tmp_path / "rows"), np.int32)
    for row in rows:
        writer.add(row)
    writer.close()
    found = Ragged(RaggedFiles.beside(tmp_path / "rows"), np.int32)
    assert [found[index].tolist() for index in range(len(found))] == rows
    assert found.lengths.tolist() == [3, 0, 5, 1]
    assert (len(writer), writer.numbers) == (4, 9)


def test_no_rows_at_all(tmp_path: Path) -> None:
    RaggedWriter(RaggedFiles.beside(tmp_path / "rows"), np.uint16).close()
    assert len(Ragged(RaggedFiles.beside(tmp_path / "rows"), np.uint16)) == 0
