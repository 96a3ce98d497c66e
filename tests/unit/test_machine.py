import os
from pathlib import Path

import pytest
import torch

from heedful import memory
from heedful.errors import UserError
from heedful.machine import available_cores, choose_device


def test_auto_is_a_device_that_works() -> None:
    torch.ones(3, device=choose_device("auto"))


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
