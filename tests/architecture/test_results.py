"""The results that are committed: every figure can be measured again, and the runs behind them were healthy."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

RESULTS = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*.json"))
HAVE = {"measure", "value", "unit", "required", "seconds", "command", "versions", "commit"}
# Benchmarks whose files hold a verdict on each run; those of Shakespeare were measured before there was one.
TRAINED = {"architectures", "fashion_mnist", "imdb", "imdb_few_labels", "multi30k", "trec"}


def rows_of(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    assert rows, f"{file.name} holds no figures"
    return rows


def test_there_are_results() -> None:
    assert {file.stem for file in RESULTS} > TRAINED


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_every_figure_tells_how_it_was_measured(file: Path) -> None:
    for row in rows_of(file):
        assert row.keys() >= HAVE, (row["measure"], HAVE - row.keys())
        assert isinstance(row["value"], int | float) and math.isfinite(row["value"]), row["measure"]
        assert row["seconds"] >= 0, row["measure"]
        assert all(isinstance(row[name], str) and row[name] for name in ("measure", "command", "commit")), row
        assert {"python", "torch"} <= row["versions"].keys(), row["measure"]


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_every_run_was_judged_healthy(file: Path) -> None:
    runs = [row for row in rows_of(file) if row["measure"].startswith("faults of the run")]
    assert runs or file.stem not in TRAINED
    assert {(row["measure"], row["value"], row["unit"]) for row in runs} == {
        (row["measure"], 0, "healthy") for row in runs
    }
