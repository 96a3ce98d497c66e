"""The folder of a made-up run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WriteRun = Callable[..., Path]


def step(number: int, **values: Any) -> dict[str, Any]:
    row = {"kind": "train", "step": number, "epoch": 0, "loss": 5 - number / 1000, "learning_rate": 1e-3}
    row |= {"gradient_norm": 1.0 + number % 7, "target_tokens": 100 + number % 11, "padding": 0.03, "seconds": 0.5}
    return {**row, "elapsed": number * 0.6, **values}


def validation(number: int, **values: Any) -> dict[str, Any]:
    row = {"kind": "validation", "step": number, "loss": 4.0, "BLEU": 3.5, "input_gain": 2.0, "answers": None}
    row |= {"attention_entropy": {"self": [0.5, 0.25]}, "examples": [{"source": "a", "translation": "b"}]}
    return {**row, "seconds": 1.0, "elapsed": number * 0.6 + 1, **values}


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """Writes rows, and what else belongs to a run."""

    def write(rows: list[dict[str, Any]], finished: bool = True, end: str = "") -> Path:
        folder = tmp_path / "made-up"
        run = folder / "run"
        checkpoint = run / "checkpoints" / "step-000000001"
        checkpoint.mkdir(parents=True)
        resolved = {"family": "encoder_decoder", "preset": "tiny", "training": {"optimizer": {"clip_norm": 1.0}}}
        choices = [{"name": "end", "value": "soon", "reason": "as asked"}]
        saved = {"resolved": resolved, "choices": choices}
        (run / "config.json").write_text(json.dumps({"requested": {"data": {}}, "saved": saved}))
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + end)
        hits = [{"rule": "duplicate", "action": "left out", "files": ["a", "b"], "line": line} for line in (3, 8)]
        report = [*hits, {"rule": "shortened", "action": "changed", "file": "a", "line": 1}, {"summary": {}}]
        (run / "data-report.jsonl").write_text("".join(json.dumps(each) + "\n" for each in report))
        (checkpoint / "state.json").write_text(json.dumps({"finished": finished}))
        return folder

    return write


@pytest.fixture
def step_row() -> Callable[..., dict[str, Any]]:
    return step


@pytest.fixture
def validation_row() -> Callable[..., dict[str, Any]]:
    return validation
