"""A run on two hosts, as network namespaces, survives the death of its processes."""

from pathlib import Path

import pytest

from benchmarks.network_hosts import why_not
from benchmarks.two_hosts import measure


@pytest.mark.slow
def test_a_run_on_two_hosts_whose_processes_are_killed_is_the_quiet_one(tmp_path: Path) -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    found = measure(tmp_path, kills=2, cuts=0, steps=250, seed=7)
    assert len(found.kills) == 2 and len(found.starts) >= 2
    assert found.lost == []
    assert found.same_losses and found.same_weights
