"""What processes tell each other is theirs alone, also where earlier ones have left their words in the store."""

import os
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from heedful.errors import LostProcessError, UserError
from heedful.training.parallel.heartbeats import Heartbeats
from heedful.training.parallel.meeting import meet
from heedful.training.parallel.reports import Reports
from heedful.training.parallel.world import Processes, World, _reason
from process_group import new_store, run_in_processes


def work_together(world: World, file: str) -> list[object]:
    """Whether the others wait for the work of the first, what it shares, and a sum."""
    if world.rank == 1 and file.endswith("0"):  # as one that is killed: it says no good-bye
        world.leave = lambda: None  # type: ignore[method-assign]

    def work() -> None:
        time.sleep(0.5)
        Path(file).write_text("done")

    world.by_leader("write", work)
    return [Path(file).exists(), world.share(file if world.leads else ""), world.sums([world.rank + 1])[0]]


def test_a_second_start_hears_nothing_of_the_first(tmp_path: Path) -> None:
    store = new_store()  # torchrun's outlives the processes that it starts again
    for start, late in enumerate((None, 0, 1)):
        file = str(tmp_path / f"work-{start}")
        found = run_in_processes(2, tmp_path / str(start), work_together, file, store=store, late=late)
        assert found == [[True, file, 3]] * 2


def test_who_is_waited_for_in_vain_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "MASTER_ADDR", "somewhere")
    monkeypatch.setitem(os.environ, "MASTER_PORT", "5")
    store = dist.HashStore()
    with pytest.raises(UserError, match=r"rank 1, 2 did not come to somewhere:5 within 0.2 s of the start"):
        meet(store, 0, 3, 0.2)
    with pytest.raises(UserError, match=r"rank 2 did not meet the others at somewhere:5 within 0.2 s .*SHARE_RDZV"):
        meet(store, 2, 3, 0.2)


def test_what_a_first_process_that_has_gone_does_not_share_is_told_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.training.parallel.reports.SILENT_SECONDS", 0.1)
    world = Processes.__new__(Processes)
    world.store, world.rank, world.size, world.step, world._led = new_store(), 1, 2, 5, 0
    world.timeout = 0.5
    world.beats = Heartbeats(world.store, 1, world.timeout)
    first, world.reports = (Reports(world.store, rank, 2, world.timeout) for rank in (0, 1))
    first.end()
    told = r"rank 0 did not answer at step 5 \(noticed by rank 1: .* 0\.5 s of rank 0, .*the last checkpoint"
    with pytest.raises(LostProcessError, match=told):
        world.share("")
    world.reports.end()


def test_what_torch_says_is_told_in_a_sentence_without_its_source() -> None:
    text = (
        "[/build/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:9: Connection reset by peer. This is typically"
    )
    assert _reason(RuntimeError(text)) == "Read error [127.0.0.1]:9: Connection reset by peer"
    assert _reason(RuntimeError("Timed out after 1.5s.\nMore")) == "Timed out after 1.5s"
    assert _reason(RuntimeError()) == ""
