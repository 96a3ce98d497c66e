"""The benchmark runs whose results are committed were healthy."""

import json
from pathlib import Path

import pytest

RESULTS = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*.json"))


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_every_run_was_judged_healthy(file: Path) -> None:
    rows = json.loads(file.read_text(encoding="utf-8"))
    verdicts = {row["measure"]: row["unit"] for row in rows if row["measure"].startswith("faults of the run")}
    assert set(verdicts.values()) <= {"healthy"}, verdicts
