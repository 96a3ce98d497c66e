import os
import threading
from pathlib import Path

import pytest
import torch

from heedful.errors import UserError
from heedful.machine import memory
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


def test_the_control_groups_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("123456789\n")
    (tmp_path / "unlimited").write_text("max\n")
    monkeypatch.setattr(memory, "CGROUP_FILES", (str(tmp_path / "memory.max"), str(tmp_path / "unlimited"), "/nowhere"))
    assert memory.memory_limit() == 123456789


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
