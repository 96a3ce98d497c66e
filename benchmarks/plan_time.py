"""What `heedful plan` itself takes, for every large preset on 8, 512 and 1,024 GPUs: `python -m benchmarks.plan_time`.

Each plan is the command itself, in a process of its own, whose processor time, of all threads together, and peak memory
the system tells when it ends. On an idle machine nobody waits longer than that time; on one that does other work the
wall time, which stands beside, says little. A model that fits in no layout is a plan too: it says how much is lacking.
GPT-3 175B stands beside what was published.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from benchmarks import results

COMMAND = "python -m benchmarks.plan_time"
PRESETS = ("translation_base", "translation_big", "gpt2_xl", "gpt3_13b", "gpt3_175b", "translation_100b")
GPUS = (8, 512, 1024)
# Brown et al. (2020), Table D.1: parameters, and FLOPs for 300 billion tokens.
PUBLISHED = (174_600e6, 3.14e23)
TOKENS = 300e9


@dataclass(frozen=True)
class Planned:
    """What a plan took, and the plan, if the model fits."""

    seconds: float
    busy: float
    peak: int
    plan: dict[str, Any] | None


def measure(preset: str, gpus: int) -> Planned:
    """Make a plan with the command line's own program."""
    command = [sys.executable, "-m", "heedful", "plan", preset, "--gpus", str(gpus), "--json"]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        output, told = process.stdout.read(), process.stderr.read().decode()  # the latter is a few lines
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds, peak = time.monotonic() - began, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if process.returncode and "fits in no layout" not in told:
        raise RuntimeError(f"heedful plan {preset} --gpus {gpus} failed: {told[-2000:]}")
    plan = None if process.returncode else json.loads(output)
    return Planned(seconds, usage.ru_utime + usage.ru_stime, peak, plan)


def rows_of(preset: str, gpus: int, found: Planned) -> list[dict[str, Any]]:
    """The figures of one plan."""
    where, seconds = f"{preset}, {gpus:,} GPUs", found.seconds
    figures: list[tuple[str, float, str, str]] = [
        ("processor time", round(found.busy, 1), "s", "<= 180"),
        ("wall time", round(seconds, 1), "s", ""),
        ("peak resident memory", round(found.peak / 1e6), "MB", "<= 8000"),
    ]
    if found.plan is None:
        figures.append(("layouts that fit", 0, "layouts", ""))
    else:
        best = found.plan["layouts"][0]
        name = " x ".join(f"{axis} {best[axis]}" for axis in ("replicate", "shard", "tensor", "pipeline"))
        name += ", recomputing" * best["activation_checkpointing"]
        figures += [
            ("layouts that fit", found.plan["layouts_that_fit"], "layouts", ""),
            (
                "memory of a GPU in the best of them",
                round((best["measured"] or best["closed_forms"])["total"] / 1e9, 1),
                "GB",
                "",
            ),
            ("days in the best of them", round(best["days"], 2), f"days, {name}", ""),
        ]
    return [
        results.row(f"{where}: {what}", value, unit, required, seconds, COMMAND)
        for what, value, unit, required in figures
    ]


def beside_published(plan: dict[str, Any], seconds: float) -> list[dict[str, Any]]:
    """GPT-3 175B's parameters and FLOPs, in the plan and as published, without what is computed a second time."""
    per_token = plan["flops_per_token"]
    planned = (plan["parameters"], (per_token["forward"] + per_token["backward"]) * TOKENS)
    required = ("0.999 to 1.001", "1 to 1.04")  # the paper does not count the scores of attention
    rows = []
    for what, value, published, limit in zip(("parameters", "FLOPs"), planned, PUBLISHED, required, strict=True):
        rows += [
            results.row(f"gpt3_175b: {what}, planned", value, what, "", seconds, COMMAND),
            results.row(
                f"gpt3_175b: {what}, planned / published", round(value / published, 4), "", limit, seconds, COMMAND
            ),
        ]
    return rows


def main() -> None:
    """Plan, and write benchmarks/results/plan_time.json."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows: list[dict[str, Any]] = []
    for preset in PRESETS:
        for gpus in GPUS:
            found = measure(preset, gpus)
            print(f"{preset} {gpus}: {found.busy:.0f} s, {found.peak / 1e6:,.0f} MB", file=sys.stderr, flush=True)
            rows += rows_of(preset, gpus, found)
            if (preset, gpus) == ("gpt3_175b", max(GPUS)):
                assert found.plan is not None
                rows += beside_published(found.plan, found.seconds)
    results.write("plan_time", rows)


if __name__ == "__main__":
    main()
