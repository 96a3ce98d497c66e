"""Code for instructions that not every processor has stays in the files that are called for them alone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "build_backend"))

from heedful_build import CORE, X86, Compiler  # noqa: E402


@pytest.mark.slow
@pytest.mark.skipif(not X86 or not shutil.which("nm") or not shutil.which("c++"), reason="nm reads what c++ compiled")
@pytest.mark.parametrize("name", ["avx2", "avx_vnni", "avx512"])
@pytest.mark.parametrize("level", ["-O3", "-O1"])
def test_a_file_shares_no_code(name: str, level: str, tmp_path: Path) -> None:
    Compiler(["c++"], tmp_path).compile([CORE / f"engine_{name}.cpp"], tmp_path / "objects", [level])
    command = ["nm", "--demangle", "--defined-only", str(tmp_path / "objects" / f"engine_{name}.o")]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Of what is weak (W, V, u) the linker keeps one for all files.
    shared = re.findall(r"^\w+ [WVu] (.*)", listed, re.MULTILINE)
    assert shared
    assert [each for each in shared if f"heedful::{name}::" not in each] == []
