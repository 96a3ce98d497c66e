"""The training page: how a run went, or is going, on one page."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.inspection.run.diagnosis import checks, diagnose, verdict
from heedful.inspection.run.rank_times import StepTimes, step_times
from heedful.inspection.run.run_record import Row, RunRecord, wrong_answers
from heedful.inspection.standalone_page import standalone_page

# In longer runs, each point is the mean of several steps.
MOST_POINTS = 1200
NOT_SCORES = {
    "kind",
    "step",
    "loss",
    "wrong",
    "input_gain",
    "answers",
    "attention_entropy",
    "examples",
    "seconds",
    "elapsed",
}
Values = NDArray[np.float64]


def training_page(run: RunRecord) -> str:
    """One self-contained HTML page about a run, which may still be going on."""
    modules = ["elements.js", "scales.js", "chart.js", "training_charts.js", "training_tables.js", "training_view.js"]
    return standalone_page(f"Training of {run.name}", ["training.css"], modules, training_document(run))


def training_document(run: RunRecord) -> dict[str, Any]:
    """Everything that the page shows, as plain values for JSON."""
    state = "finished" if run.finished else "stopped" if run.failure else "unfinished"
    return {
        "format": 1,
        "name": run.name,
        "family": run.family,
        "preset": run.preset,
        "state": state,
        "verdict": verdict(run),
        "checks": checks(run),
        "findings": [asdict(finding) for finding in diagnose(run)],
        "steps": _columns(run.steps),
        "validations": [_validation(row) for row in run.validations],
        "kept": run.validations.index(run.best) if run.best else None,
        "kept_by": "lowest held-out loss" if run.best and wrong_answers(run.best) is None else "fewest wrong answers",
        "unit": run.steps[-1].get("unit", "target tokens") if run.steps else "target tokens",
        "clip_norm": run.clip_norm,
        "choices": run.choices,
        "data_report": run.data_report,
        "processes": _processes(step_times(run)),
        "totals": {
            "steps": run.steps[-1]["step"] if run.steps else 0,
            "minutes": _number(_last_second(run) / 60),
            "target_tokens": sum(row["target_tokens"] for row in run.steps),
        },
    }


def _processes(times: StepTimes | None) -> dict[str, Any] | None:
    """The step times of each process, if there are several."""
    return None if times is None else {"words": times.in_words(), "ranks": [asdict(each) for each in times.ranks]}


def _last_second(run: RunRecord) -> float:
    return max((rows[-1]["elapsed"] for rows in (run.steps, run.validations) if rows), default=0.0)


def _columns(rows: list[Row]) -> dict[str, list[float | None]]:
    """The steps as columns; the mean loss and speed are weighted by tokens and by time."""
    if not rows:
        return {}

    def column(name: str) -> Values:
        return np.array([row[name] for row in rows], float)

    tokens, seconds, loss, norm = (column(name) for name in ("target_tokens", "seconds", "loss", "gradient_norm"))
    size = math.ceil(len(rows) / MOST_POINTS)
    starts = np.arange(0, len(rows), size)
    ends = np.append(starts[1:], len(rows)) - 1

    def total(values: Values) -> Values:
        return np.add.reduceat(values, starts)

    columns: dict[str, Values] = {
        "step": column("step")[ends],
        "minutes": column("elapsed")[ends] / 60,
        "loss": total(loss * tokens) / total(tokens),
        "loss_low": np.minimum.reduceat(loss, starts),
        "loss_high": np.maximum.reduceat(loss, starts),
        "learning_rate": column("learning_rate")[ends],
        "gradient_norm": total(norm) / (ends - starts + 1),
        "gradient_norm_high": np.maximum.reduceat(norm, starts),
        "padding": total(column("padding")) / (ends - starts + 1),
        "tokens_per_second": total(tokens) / total(seconds),
    }
    return {name: [_number(value) for value in values] for name, values in columns.items()}


def _validation(row: Row) -> dict[str, Any]:
    scores = {name: _number(value) for name, value in row.items() if name not in NOT_SCORES}
    entropy = row.get("attention_entropy") or {}
    return {
        "step": row["step"],
        "minutes": _number(row["elapsed"] / 60),
        "loss": _number(row["loss"]),
        "scores": scores,
        "input_gain": _number(row.get("input_gain")),
        "attention_entropy": {kind: [_number(value) for value in layers] for kind, layers in entropy.items()},
        "examples": row.get("examples") or [],
    }


def _number(value: float | None) -> float | None:
    """A number to six significant digits, enough for a chart; None if JSON cannot hold it."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
