"""The environments that peers live in: one each, made of pinned names, under benchmarks/environments."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from heedful.machine.devices import available_cores

FOLDER = Path(__file__).parents[1] / "environments"
TORCH, CTRANSLATE2 = "torch==2.13.0", "ctranslate2==4.8.4"
PACKAGES = {
    # Without torch, which it would import, and so start later.
    "ctranslate2": [CTRANSLATE2, "tokenizers==0.23.3"],
    # CTranslate2 is for its converter, which needs the two others.
    "huggingface": [TORCH, CTRANSLATE2, "transformers==5.22.2", "safetensors==0.8.0"],
    # It needs importlib_metadata, which its package does not name.
    "joeynmt": [TORCH, "joeynmt==2.3.0", "importlib_metadata==10.2.0", "setuptools==80.10.2", "safetensors==0.8.0"],
    "x-transformers": [TORCH, "x-transformers==2.31.10"],
}


class NotInstallableError(Exception):
    """An environment that cannot be made; the text says why."""


def make_all(names: Iterable[str] = PACKAGES) -> None:
    """Make those that are not there side by side; who asks for one that cannot be made is told why then."""

    def make(name: str) -> None:
        with suppress(NotInstallableError):
            python_of(name)

    with ThreadPoolExecutor(available_cores()) as pool:
        list(pool.map(make, names))


def python_of(name: str) -> Path:
    """The interpreter of an environment, which is made if it is not there; `heedful` is this one."""
    if name == "heedful":
        return Path(sys.executable)
    folder = FOLDER / name
    marker, wanted = folder / "installed.txt", "\n".join(PACKAGES[name])
    python = folder / "bin" / "python"
    if not marker.is_file() or marker.read_text(encoding="utf-8") != wanted:
        print(f"making the environment {name}: {', '.join(PACKAGES[name])}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        command = [*pip, "install", "--no-compile", *PACKAGES[name]]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.returncode:
            errors = [line for line in result.stderr.splitlines() if "ERROR" in line] or result.stderr.splitlines()
            raise NotInstallableError(f"{name} cannot be installed: {' '.join(errors)[-500:]}")
        marker.write_text(wanted, encoding="utf-8")
    return python
