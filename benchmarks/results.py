"""The result files of all benchmarks: a list of rows, one per measure."""

from __future__ import annotations

import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from heedful.inspection.run.diagnosis import diagnose, verdict
from heedful.inspection.run.run_record import read_run
from heedful.machine.cores import available_cores

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("torch", "tokenizers", "numpy", "sacrebleu")


def environment() -> dict[str, str]:
    """The versions and the machine that a figure was measured with."""
    return {
        "python": platform.python_version(),
        "heedful": version("heedful"),
        **{name: version(name) for name in PACKAGES},
        "machine": f"{platform.machine()}, {cpu_name()}, cores used: {available_cores()}",
    }


def cpu_name() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def commit() -> str:
    """The commit that was measured, with a mark if the tree has other changes."""
    folder = Path(__file__).parent
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", "../src"], cwd=folder, capture_output=True, text=True
    )
    return head.stdout.strip() + ("+changes" if changed.stdout.strip() else "")


# Taken when a benchmark starts: the tree may be worked on while it runs.
COMMIT = commit()


def row(measure: str, value: float, unit: str, required: str, seconds: float, command: str) -> dict[str, Any]:
    """One measured figure."""
    return {
        "measure": measure,
        "value": value,
        "unit": unit,
        "required": required,
        "seconds": round(seconds, 1),
        "command": command,
        "versions": environment(),
        "commit": COMMIT,
    }


def health(folder: Path, command: str) -> dict[str, Any]:
    """The verdict on a training run: the number of its faults, with the verdict in words as the unit."""
    run = read_run(folder)
    faults = sum(finding.fault for finding in diagnose(run))
    return row(f"faults of the run {run.name}", faults, verdict(run), "0", run.steps[-1]["elapsed"], command)


def write(name: str, rows: list[dict[str, Any]]) -> Path:
    """Write a result file and print it as a table."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for each in rows:
        print(f"{each['measure']:40} {each['value']:>12} {each['unit']:14} required: {each['required']}")
    return path
