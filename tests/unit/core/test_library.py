"""Finding and loading the engine's library, and what is said if there is none that can be used."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.core import library
from heedful.errors import UserError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package's folder, empty."""
    monkeypatch.setattr(library, "LIBRARY", tmp_path / library.LIBRARY.name)
    monkeypatch.setattr(library, "NOT_BUILT", tmp_path / library.NOT_BUILT.name)
    library.library.cache_clear()
    yield tmp_path
    library.library.cache_clear()


def test_it_is_loaded_once() -> None:
    assert library.why_not_built() is None
    assert library.library() is library.library()
    assert library.library().heedful_abi_version() == library.ABI_VERSION
    assert re.fullmatch(r"[a-z0-9-]+", library.instruction_set())


def test_the_reason_of_the_build_is_given(folder: Path) -> None:
    (folder / "not_built.txt").write_text("no C++ compiler works here\nc++: not found\n")
    assert library.why_not_built() == "not built: no C++ compiler works here; c++: not found"
    with pytest.raises(UserError, match=r"cannot be used: not built: no C\+\+ compiler works here"):
        library.library()


def test_a_library_that_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(UserError, match=rf"{library.LIBRARY.name} is missing: reinstall heedful"):
        library.library()


def test_a_file_that_is_not_a_library_is_refused(folder: Path) -> None:
    (folder / library.LIBRARY.name).write_text("text")
    with pytest.raises(UserError, match=r"cannot be loaded: .*: reinstall heedful"):
        library.library()


def test_another_interface_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = Path(library.__file__).parent / library.LIBRARY.name
    shutil.copy(built, folder)
    monkeypatch.setattr(library, "ABI_VERSION", 7919)
    with pytest.raises(UserError, match=r"has interface \d+, expected 7919: reinstall heedful"):
        library.library()


def test_it_is_imported_without_torch_and_numpy() -> None:
    program = "import sys, heedful.core.library\nprint({'torch', 'numpy'} & sys.modules.keys())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment)
    assert result.stdout.split() == [b"set()"]


@pytest.mark.skipif(sys.platform != "linux", reason="ldd is for Linux")
def test_it_needs_the_c_library_alone() -> None:
    result = subprocess.run(["ldd", str(library.LIBRARY)], check=True, capture_output=True, text=True)
    needed = {line.split()[0].partition(".so")[0] for line in result.stdout.splitlines() if ".so" in line}
    assert {name for name in needed if name.startswith("lib")} <= {"libc", "libm", "libpthread"}
