"""The time of a step: what is sent while others compute, and what is waited for."""

import pytest

from heedful.planning.flops import Flops
from heedful.planning.layouts import AXES, Layout
from heedful.planning.timing import Hardware, step_seconds

HARDWARE = Hardware(1e9, 1e12, 1e9)


def seconds(layout: Layout, **sent: int) -> float:
    return step_seconds(Flops(1e9, 0.0), 53, layout, {**dict.fromkeys(AXES, 0), **sent}, HARDWARE)


# 125 MB take a second between machines.
@pytest.mark.parametrize("size", [125, 12_500_000, 1_250_000_000])
def test_copies_send_while_they_compute_and_copies_of_stages_afterwards(size: int) -> None:
    copies, stages = Layout(replicate=17, parts=7), Layout(replicate=17, pipeline=3, parts=7)
    assert seconds(copies, replicate=size) == max(seconds(copies), size / 125e6)
    assert seconds(stages, replicate=size) == pytest.approx(seconds(stages) + size / 125e6)
