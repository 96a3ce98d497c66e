"""Wheels and source archives as the backend makes them: their tags, and what is in them."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

LIBRARY = {"win32": "heedful.dll", "darwin": "libheedful.dylib"}.get(sys.platform, "libheedful.so")
# A frontend calls the backend in the tree's folder, with the backend's folder on the path.
PROGRAM = "import sys; import heedful_backend as backend; print(getattr(backend, sys.argv[1])(*sys.argv[2:]))"


def call(tree: Path, hook: str, *arguments: str | Path, **variables: str) -> str:
    """What a hook of the backend returns."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "build_backend"), **variables}
    command = [sys.executable, "-c", PROGRAM, hook, *map(str, arguments)]
    result = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.splitlines()[-1]


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no c++ on this machine")
def test_a_wheel_with_the_library_and_then_one_without(tree: Path, tmp_path: Path) -> None:
    assert call(tree, "get_requires_for_build_wheel") == "[]"
    wheel = call(tree, "build_wheel", tmp_path)
    assert wheel.startswith("heedful-") and wheel.endswith(".whl")
    assert "-py3-none-" in wheel
    if sys.platform == "linux":
        assert wheel.endswith(f"-py3-none-{sysconfig.get_platform().replace('-', '_')}.whl")
    assert f"heedful/core/{LIBRARY}" in names_in(tmp_path / wheel)
    assert not [name for name in names_in(tmp_path / wheel) if name.endswith(("built_from.txt", "not_built.txt"))]

    # The same tree again: nothing of the first build may be in the second wheel.
    wheel = call(tree, "build_wheel", tmp_path, HEEDFUL_CORE="none")
    assert wheel.endswith("-py3-none-any.whl")
    assert "heedful/core/not_built.txt" in names_in(tmp_path / wheel)
    assert f"heedful/core/{LIBRARY}" not in names_in(tmp_path / wheel)
    with zipfile.ZipFile(tmp_path / wheel) as archive:
        assert archive.read("heedful/core/not_built.txt") == b"HEEDFUL_CORE=none was set\n"


def test_an_editable_wheel_leaves_the_library_in_the_tree(tree: Path, tmp_path: Path) -> None:
    wheel = call(tree, "build_editable", tmp_path)
    assert wheel.endswith(".whl") and f"heedful/core/{LIBRARY}" not in names_in(tmp_path / wheel)
    left = {file.name for file in (tree / "src/heedful/core").iterdir()}
    assert len(left & {LIBRARY, "not_built.txt"}) == 1


def test_a_source_archive_has_what_the_build_needs_and_nothing_built(tree: Path, tmp_path: Path) -> None:
    for name in (LIBRARY, "built_from.txt", "not_built.txt"):
        (tree / "src/heedful/core" / name).write_text("of an earlier build")
    with tarfile.open(tmp_path / call(tree, "build_sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"build_backend/heedful_build.py", "build_backend/heedful_backend.py", "core/interface.h"} < names
    assert {"core/interface.cpp", "src/heedful/core/library.py", "pyproject.toml"} < names
    assert not [name for name in names if name.endswith((LIBRARY, "built_from.txt", "not_built.txt", ".pyc"))]
