"""The plan of a small model beside two real processes; the program itself does that for real presets."""

from dataclasses import replace

import pytest

from benchmarks.plan_memory import LAYOUTS, in_fp32, planned_bytes, real_bytes
from planned_subjects import subject


@pytest.mark.parametrize("kind", LAYOUTS)
def test_the_plan_is_within_a_tenth_of_what_two_processes_take(kind: str) -> None:
    given = in_fp32(subject("translation"))
    layout = replace(LAYOUTS[kind], sequences=19)
    planned, real = planned_bytes(given, layout), real_bytes(given, layout)
    assert len(real) == 2
    for each in real:
        assert planned == pytest.approx(each["tensors"], rel=0.1)
        assert each["resident"] > each["tensors"]
