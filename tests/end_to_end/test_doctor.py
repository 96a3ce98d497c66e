"""`heedful doctor`: what it finds, and what it says of a broken installation."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.errors import UserError

ROOT = Path(__file__).parents[2]


def test_what_there_is_and_what_it_can_do() -> None:
    command = [sys.executable, "-m", "heedful", "doctor", "--json"]
    process = subprocess.run(command, capture_output=True, timeout=120)
    result = json.loads(process.stdout)
    assert process.stderr == b""
    assert process.returncode == 0 and result["ok"]
    checks = {each["name"]: each for each in result["checks"]}
    assert all(each["ok"] and each["advice"] is None for each in checks.values())
    assert checks.keys() >= {"python", "heedful", "torch", "numpy", "tokenizers", "device", "cores", "memory", "disk"}
    assert re.fullmatch(r"[a-z0-9-]+, .*heedful\.?\w*", checks["core"]["found"])
    assert re.fullmatch(r"two steps of a tiny model, loss \d+\.\d+", checks["train"]["found"])
    assert "equal to the last bit" in checks["save and load"]["found"]
    assert "equal to the last bit in batches of 1 and of 7" in checks["translate"]["found"]


def test_weights_that_a_folder_does_not_keep_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful import model_folder
    from heedful.doctor.self_test import SelfTest

    test = SelfTest(tmp_path)
    test.train()
    assert "equal to the last bit" in test.save_and_load()
    save = model_folder.save_model_folder

    def careless(folder: Path, model: torch.nn.Module, *others: Any) -> None:
        save(folder, model, *others)
        with torch.no_grad():
            next(model.parameters()).mul_(1.5)

    monkeypatch.setattr(model_folder, "save_model_folder", careless)
    with pytest.raises(UserError, match="weights differ after they were saved and loaded: "):
        test.save_and_load()


@pytest.mark.parametrize("lacking", ["model", "copy"])
def test_weights_that_come_or_go_when_they_are_saved_are_named(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful import model_folder
    from heedful.doctor.self_test import SelfTest

    test = SelfTest(tmp_path)
    test.train()
    load = model_folder.load_model_folder
    weights = load(test.model).network.state_dict()
    gone = next(iter(weights))

    def forgetful(folder: Path) -> Any:
        found = load(folder)
        if folder.name == lacking:
            rest = {name: weight for name, weight in weights.items() if name != gone}
            monkeypatch.setattr(found.network, "state_dict", lambda: rest)
        return found

    monkeypatch.setattr(model_folder, "load_model_folder", forgetful)
    monkeypatch.setattr(model_folder, "save_model_folder", lambda folder, *_: shutil.copytree(test.model, folder))
    with pytest.raises(UserError, match=f"weights differ after they were saved and loaded: {re.escape(gone)}$"):
        test.save_and_load()


def test_a_broken_package_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "sacrebleu.py").write_text("raise ImportError('half of it is missing')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")])}
    command = [sys.executable, "-m", "heedful", "doctor"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert result.returncode == 1 and result.stderr == ""
    (line,) = [line for line in result.stdout.splitlines() if not line.startswith("ok ")]
    assert (
        line.startswith("not ok  sacrebleu ") and "half of it is missing" in line and "pip install 'sacrebleu" in line
    )
    assert "ok      torch " in result.stdout


def test_a_core_that_was_not_built_is_a_fault_only_without_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.core import library
    from heedful.doctor import checks

    (tmp_path / "not_built.txt").write_text("no C++ compiler works here\nc++: No such file or directory\n")
    monkeypatch.setattr(library, "LIBRARY", tmp_path / "libheedful.so")
    monkeypatch.setattr(library, "NOT_BUILT", tmp_path / "not_built.txt")
    library.library.cache_clear()
    core = {each.name: each for each in islice(checks.check_machine(), 3)}["core"]
    assert core.ok and core.found == "not built: no C++ compiler works here; c++: No such file or directory"
    monkeypatch.setattr(checks.importlib.util, "find_spec", lambda name: None)
    core = {each.name: each for each in islice(checks.check_machine(), 3)}["core"]
    assert not core.ok and "docs/installing.md" in core.advice


def test_it_knows_what_the_package_requires() -> None:
    from heedful.doctor.checks import EXTRAS, OLDEST_TORCH, PACKAGES

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {f"{name}>={oldest}" for name, (oldest, _) in PACKAGES.items()} == set(project["dependencies"])
    assert project["optional-dependencies"]["train"] == [f"torch>={OLDEST_TORCH}"]
    for extra, packages in EXTRAS.items():
        assert {each.partition(">=")[0] for each in project["optional-dependencies"][extra]} == set(packages)
