"""heedful installed as users install it, with pip and a network for packages alone."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files of the package, in a folder whose path has a space."""
    tree = tmp_path / "a tree"
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "libheedful*", "built_from.txt", "not_built.txt")
    for folder in ("build_backend", "core", "src"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=left_out)
    for file in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, tree / file)
    return tree


def pip_wheel(tree: Path, folder: Path, **variables: str) -> Path:
    """The wheel that pip makes."""
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), str(tree)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpacked(wheel: Path, folder: Path) -> str:
    """What the library of an unpacked wheel says, to a Python that finds nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    program = (
        "from heedful.core.library import instruction_set, why_not_built\nprint(why_not_built() or instruction_set())"
    )
    command = [sys.executable, "-S", "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no c++ on this machine")
def test_with_a_compiler(tree: Path, tmp_path: Path) -> None:
    wheel = pip_wheel(tree, tmp_path / "wheels")
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl")
    assert re.fullmatch(r"[a-z0-9-]+", unpacked(wheel, tmp_path / "there"))


@pytest.mark.skipif(sys.platform == "win32", reason="there Zig is what builds anyway")
def test_without_a_compiler_zig_is_fetched(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "no compilers").mkdir()
    wheel = pip_wheel(tree, tmp_path / "wheels", PATH=str(tmp_path / "no compilers"), CXX="")
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl")
    assert re.fullmatch(r"[a-z0-9-]+", unpacked(wheel, tmp_path / "there"))


def test_where_nothing_may_be_built(tree: Path, tmp_path: Path) -> None:
    wheel = pip_wheel(tree, tmp_path / "wheels", HEEDFUL_CORE="none")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert unpacked(wheel, tmp_path / "there") == "not built: HEEDFUL_CORE=none was set"
