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


def test_the_readme_says_what_was_measured() -> None:
    training = {row["measure"]: row["value"] for row in rows_of(RESULTS[0].parent / "speed_training.json")}
    engine = {row["measure"]: row["value"] for row in rows_of(RESULTS[0].parent / "speed_engine.json")}
    small, middle, wide = "d=128, 4+4", "d=256, 4+4", "d=512, 6+6"
    program, beside = "against tokenizers and CTranslate2 int8", "against CTranslate2 int8"
    own = "heedful / this, own batches"
    references = [
        training[f"{size}: the better of Hugging Face and torch.nn.Transformer: {own}"]
        for size in (small, middle, wide)
    ]
    peers = [training[f"{size}: JoeyNMT: {own}"] for size in (small, middle, wide)]
    many = [engine[f"{size}: sentences a second, int8, beam 5: {beside}"] for size in (middle, wide)]
    sizes = (f"{small}, trained", middle, wide)
    one = [engine[f"{size}: one sentence, int8, beam 5: {beside}"] for size in sizes]
    starts = [engine[f"{size}: from process start to the first translation, int8: {program}"] for size in sizes]
    lines = (1000, 512, 512)
    memory = [
        engine[f"{size}: peak memory, {count} lines, int8: {program}"] for size, count in zip(sizes, lines, strict=True)
    ]
    file = engine[f"{small}, trained: 1000 lines from a file to a file, int8, beam 5: {program}"]
    rows = [
        *(f"{' | '.join(f'{ratio:.1f}x' for ratio in ratios)} |" for ratios in (references, peers, many, one, starts)),
        f"| {file:.1f}x | | |",
        f"{' | '.join(f'{share:.2f}' for share in memory)} |",
    ]
    generating = "gpt2_small: tokens a second, int8, 256 new tokens, greedy: against"
    peer, reference = engine[f"{generating} CTranslate2 Generator int8"], engine[f"{generating} Hugging Face generate"]
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    for row in (*rows, f"{peer:.1f}x as fast as CTranslate2 and {reference:.1f}x as fast as Hugging Face"):
        assert row in readme, row
