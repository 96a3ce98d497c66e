"""What a plan takes is told by the system; a model that does not fit is a plan too."""

import sys

import pytest

from benchmarks.plan_time import beside_published, measure, rows_of


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell what an ended process took")
def test_time_and_memory_of_a_plan_are_those_of_its_process() -> None:
    found = measure("gpt3_175b", 8)
    assert found.plan is None
    assert 5e7 < found.peak < 8e9 and 0.1 < found.busy < 180
    rows = {row["measure"]: row for row in rows_of("gpt3_175b", 8, found)}
    assert rows["gpt3_175b, 8 GPUs: processor time"]["required"] == "<= 180"
    assert rows["gpt3_175b, 8 GPUs: peak resident memory"]["required"] == "<= 8000"
    assert rows["gpt3_175b, 8 GPUs: layouts that fit"]["value"] == 0


def test_what_was_published_stands_beside_the_plan() -> None:
    plan = {"parameters": 174_600_000_000, "flops_per_token": {"forward": 0.5e12, "backward": 0.55e12, "recomputed": 1}}
    values = {row["measure"]: row["value"] for row in beside_published(plan, 1.0)}
    assert values["gpt3_175b: parameters, planned / published"] == 1.0
    assert values["gpt3_175b: FLOPs, planned / published"] == pytest.approx(1.05e12 * 300e9 / 3.14e23, abs=1e-4)
