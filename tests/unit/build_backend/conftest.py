"""A small package with the build of heedful, in a folder whose path has a space."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the build needs of the repository, and nothing that a build has made; it compiles without optimizing."""
    monkeypatch.setenv("HEEDFUL_CORE_FLAGS", "-O0")
    tree = tmp_path / "a folder" / "heedful"
    ignored = shutil.ignore_patterns("__pycache__", "libheedful*", "heedful.dll*", "built_from.txt", "not_built.txt")
    for folder in ("build_backend", "core", "src/heedful/core"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    for file in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "src/heedful/__init__.py"):
        shutil.copy(ROOT / file, tree / file)
    return tree
