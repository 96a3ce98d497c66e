"""What a training run has left in its folder, read while it goes on or after its end."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import read_json
from heedful.errors import UserError
from heedful.files import whole_lines

Row = dict[str, Any]


@dataclass(frozen=True)
class RunRecord:
    """A run: its choices, a row for each step and each validation, what stopped it, and what was done to its data."""

    name: str
    family: str
    preset: str
    training: dict[str, Any]
    choices: list[Row]
    starts_from_model: bool
    steps: list[Row]
    validations: list[Row]
    failure: Row | None
    finished: bool
    data_report: list[Row]

    @property
    def best(self) -> Row | None:
        """The validation with the lowest loss, whose weights the model folder holds."""
        measured = [row for row in self.validations if math.isfinite(row["loss"])]
        return min(measured, key=lambda row: row["loss"], default=None)


def read_run(folder: Path) -> RunRecord:
    """Read the folder of a run."""
    run = folder / "run"
    if not (run / "config.json").is_file():
        raise UserError(f"{folder} holds no training run: there is no {run / 'config.json'}")
    content = read_json(run / "config.json")
    saved, data = content["saved"], content["requested"]["data"]
    rows = _metrics(run / "metrics.jsonl")
    return RunRecord(
        name=folder.resolve().name,
        family=saved["resolved"]["family"],
        preset=saved["resolved"]["preset"],
        training=saved["resolved"]["training"],
        choices=saved["choices"],
        starts_from_model=bool(data.get("from_model") or data.get("start_from")),
        steps=_with_times([row for row in rows if row["kind"] in ("train", "validation")]),
        validations=[row for row in rows if row["kind"] == "validation"],
        failure=next((row for row in rows if row["kind"] == "failure"), None),
        finished=_finished(run / "checkpoints"),
        data_report=_summarised(run / "data-report.jsonl"),
    )


def _metrics(file: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(whole_lines(file) if file.exists() else [], 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise UserError(f"{file} is broken: line {number} is not valid JSON") from None
    return rows


def _with_times(rows: list[Row]) -> list[Row]:
    """The rows of steps, with the seconds since the start where an older run has not recorded them."""
    steps, elapsed = [], 0.0
    for row in rows:
        elapsed = row.get("elapsed", elapsed + row["seconds"])
        if row["kind"] == "train":
            steps.append({**row, "elapsed": elapsed})
    return steps


def _finished(checkpoints: Path) -> bool:
    states = sorted(checkpoints.glob("step-*/state.json"))
    try:
        return bool(states) and bool(json.loads(states[-1].read_text(encoding="utf-8"))["finished"])
    except OSError:  # a run that goes on has replaced it meanwhile
        return False


def _summarised(file: Path) -> list[Row]:
    """How often each rule was applied to the data, and where first."""
    rules: dict[tuple[str, str], Row] = {}
    if not file.exists():
        return []
    with file.open(encoding="utf-8") as lines:  # it may be long
        for line in lines:
            entry = json.loads(line)
            if "rule" in entry:
                first = {"files": entry.get("files") or [entry["file"]], "line": entry.get("line")}
                fresh = {"rule": entry["rule"], "action": entry["action"], "count": 0, "first": first}
                rules.setdefault((entry["rule"], entry["action"]), fresh)["count"] += 1
    return list(rules.values())
