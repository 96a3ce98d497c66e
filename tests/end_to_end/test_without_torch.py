"""The command where torch is not installed: what does without it works, and what does not says so in one line."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_without_torch(tmp_path: Path) -> Run:
    """Runs the command in processes, and those that they start, in which torch cannot be imported."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(ROOT / "src")])}

    def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "heedful", *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, env=environment, input="", timeout=120)
        assert result.returncode == code, result.stderr
        return result

    return run


def test_what_a_model_folder_holds_is_shown(run_without_torch: Run, run, untrained_model: Path) -> None:
    shown = run_without_torch("info", untrained_model).stdout
    assert shown == run("info", untrained_model).stdout.decode()
    assert "encoder_decoder" in shown and "263" in shown


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["train", "translation", "--help"]])
def test_help_is_there(run_without_torch: Run, arguments: list[str]) -> None:
    assert "Usage: heedful" in run_without_torch(*arguments).stdout


def test_the_doctor_says_that_it_is_not_there(run_without_torch: Run) -> None:
    result = json.loads(run_without_torch("doctor", "--json").stdout)
    assert result["ok"]
    checks = {each["name"]: each["found"] for each in result["checks"]}
    assert checks["torch"] == "not installed; to train: pip install 'heedful[train]'"
    assert "memory" in checks and "translate" not in checks


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (["train", "translation", "--source", "a.en", "--target", "a.de", "--out", "out"], "training"),
        (["demo", "classifier"], "`heedful demo`"),
        (["import", "a", "b"], "`heedful import`"),
        (["export", "a", "--to", "ctranslate2", "b"], "`heedful export`"),
        (["inspect", "a", "red dog"], "looking into attention"),
        (["inspect", "a", "--image", "a.png"], "looking into attention"),
        (["bench", "limits"], "`heedful bench`"),
    ],
)
def test_one_line_says_what_needs_it(run_without_torch: Run, command: list[str], what: str) -> None:
    result = run_without_torch(*command, code=2)
    assert result.stderr == f"heedful: {what} needs PyTorch, which is not installed: pip install 'heedful[train]'\n"
    assert result.stdout == ""
