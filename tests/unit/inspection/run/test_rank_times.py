import json
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.inspection.run.rank_times import step_times
from heedful.inspection.run.run_record import read_run
from heedful.inspection.run.training_page import training_document


def log(folder: Path, rank: int, rows: list[tuple[int, float, float]], end: str = "") -> None:
    """The log of a process: the number of each step, its seconds, and those of them that were waited."""
    logs = folder / "run" / "logs"
    logs.mkdir(exist_ok=True)
    lines = [{"time": "2026-01-01T00:00:00", "kind": "start", "resumed_at": None, "process": 17}]
    for step, seconds, waited in rows:
        lines.append({"kind": "step", "step": step, "loss": 1.0, "seconds": seconds, "waited": waited})
    (logs / f"rank-{rank}.log").write_text("".join(json.dumps(each) + "\n" for each in lines) + end)


@pytest.fixture
def folder(write_run, step_row) -> Path:
    return write_run([step_row(number) for number in range(1, 6)])


def test_one_process_has_no_table(folder: Path) -> None:
    assert step_times(read_run(folder)) is None
    assert training_document(read_run(folder))["processes"] is None
    log(folder, 0, [(1, 0.5, 0.0)])
    assert step_times(read_run(folder)) is None


def test_the_slowest_is_the_one_that_the_others_wait_for(folder: Path) -> None:
    log(folder, 0, [(step, 0.7, 0.4) for step in range(1, 6)])
    log(folder, 1, [(step, 0.7, 0.0) for step in range(1, 5)] + [(5, 0.9, 0.1)])
    log(folder, 2, [(step, 0.7, 0.5) for step in range(1, 6)], end='{"kind": "st')
    times = step_times(read_run(folder))
    assert times is not None and times.slowest.rank == 1
    assert [each.rank for each in times.ranks] == [0, 1, 2]
    assert [each.own for each in times.ranks] == pytest.approx([0.3, 0.7, 0.2])
    assert times.ranks[1].longest == 0.9
    words = "3 processes, steps 1 to 5: rank 1 is the slowest, with 0.7 s of its own per step; the others take 0.25 s"
    assert times.in_words().startswith(words)
    document = training_document(read_run(folder))["processes"]
    assert document["words"] == times.in_words() and document["ranks"][2]["rank"] == 2


def test_processes_that_are_about_as_fast_are_told_so(folder: Path) -> None:
    log(folder, 0, [(step, 0.5, 0.05) for step in (1, 2, 3)])
    log(folder, 1, [(step, 0.5, 0.03) for step in (1, 2, 3)])
    times = step_times(read_run(folder))
    assert times is not None
    assert times.in_words().endswith("a step takes 0.5 s; rank 1 is the slowest, by less than a tenth")


def test_steps_that_were_taken_again_count_once_and_processes_that_left_do_not(folder: Path) -> None:
    log(folder, 0, [(1, 9.0, 0.0), (2, 9.0, 0.0), (2, 0.5, 0.0), (3, 0.7, 0.0)])
    log(folder, 1, [(2, 0.5, 0.0), (3, 0.7, 0.0)])
    log(folder, 2, [(1, 9.0, 0.0), (2, 9.0, 0.0)])
    times = step_times(read_run(folder))
    assert times is not None and (times.first_step, times.last_step) == (2, 3)
    assert [(each.rank, each.longest) for each in times.ranks] == [(0, 0.7), (1, 0.7)]


def test_a_broken_log_is_named(folder: Path) -> None:
    log(folder, 1, [(1, 0.5, 0.0)], end='{"kind": "step", "step": "one"}\n')
    with pytest.raises(UserError, match=r"rank-1.log is broken: line 3 is not as heedful writes it"):
        read_run(folder)
