import os
import sys
import threading
from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.machine import control_group, memory
from heedful.machine.cores import available_cores
from heedful.machine.devices import choose_device, one_thread, side_by_side, side_by_side_on


def test_auto_is_a_device_that_works() -> None:
    assert float(torch.ones(3, device=choose_device("auto")).sum()) == 3.0


def test_a_device_that_is_not_there_is_an_error() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(UserError, match="no device 'cuda': choose from"):
        choose_device("cuda")


def test_cores() -> None:
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all control groups, of which this process is in the one of a service."""
    (tmp_path / "of_process").write_text("1:name=systemd:/elsewhere\n0::/system.slice/a:b.service\n")
    (tmp_path / "system.slice" / "a:b.service").mkdir(parents=True)
    monkeypatch.setattr(control_group, "OF_PROCESS", tmp_path / "of_process")
    monkeypatch.setattr(control_group, "ALL", tmp_path)
    return tmp_path


@pytest.mark.parametrize("where", [".", "system.slice", "system.slice/a:b.service"])
def test_the_least_limit_of_a_control_group_and_those_around_it_counts(groups: Path, where: str) -> None:
    for place in (".", "system.slice", "system.slice/a:b.service"):
        (groups / place / "memory.max").write_text("123456789\n" if place == where else "max\n")
        (groups / place / "cpu.max").write_text("170000 100000\n" if place == where else "max 100000\n")
    assert memory.memory_limit() == 123456789
    assert available_cores() == 1
    (groups / where / "memory.max").write_text("max\n")
    assert memory.memory_limit() > 123456789


def test_control_groups_of_the_first_version_limit_memory_too(groups: Path) -> None:
    (groups / "memory").mkdir()
    (groups / "memory" / "memory.limit_in_bytes").write_text("123456789\n")
    assert memory.memory_limit() == 123456789


def test_without_control_groups_there_is_no_limit_of_theirs(groups: Path) -> None:
    (groups / "of_process").unlink()
    assert available_cores() >= 1 and memory.memory_limit() > 123456789


def test_resident_memory_is_unknown_where_the_system_does_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = memory.resident_memory()
    monkeypatch.setattr(memory, "STATM", tmp_path / "missing")
    for size in (held, memory.resident_memory()):
        assert size is None or size > 2**20
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "resource", None)  # which makes it one that cannot be imported
    assert memory.resident_memory() is None


def test_side_by_side_keeps_the_order_and_draws_no_more_than_it_needs() -> None:
    drawn = []

    def items():
        for number in range(100):
            drawn.append(number)
            yield number

    results = side_by_side(
        lambda number: (number * number, torch.is_inference_mode_enabled()), items(), torch.device("cpu")
    )
    assert next(results) == (0, True)
    assert len(drawn) <= 2 * available_cores() + 1
    assert list(results) == [(number * number, True) for number in range(1, 100)]
    assert not torch.is_inference_mode_enabled()


def test_a_thread_that_is_held_to_one_core_can_still_work_side_by_side_on_more() -> None:
    together = threading.Barrier(3)

    def meet(number: int) -> tuple[int, int]:
        together.wait(timeout=20)  # which fails unless three are at work at the same time
        return number, torch.get_num_threads()

    with one_thread(), side_by_side_on(3):
        assert list(side_by_side(meet, range(6), torch.device("cpu"))) == [(number, 1) for number in range(6)]


def test_what_goes_wrong_in_a_worker_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda number: 1 // number, [1, 0], torch.device("cpu")))
