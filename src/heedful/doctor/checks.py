"""Whether heedful can work on this machine: what is installed, what there is to compute with, and a test of it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import heedful
from heedful.core import library
from heedful.errors import UserError
from heedful.machine.cores import available_cores
from heedful.machine.memory import memory_limit
from heedful.machine.torch_needed import has_torch

OLDEST_PYTHON = (3, 11)
LEAST_MEMORY = 2**30
LEAST_DISK = 2**30
GIBIBYTE = 2**30
# Package -> the oldest version that works, and the module that it is imported as.
PACKAGES = {
    "numpy": ("1.26", "numpy"),
    "tokenizers": ("0.20", "tokenizers"),
    "safetensors": ("0.4.3", "safetensors"),
    "sentencex": ("1.0.30", "sentencex"),
    "click": ("8.1", "click"),
    "rich": ("13.7", "rich"),
    "filelock": ("3.12", "filelock"),
    "pillow": ("10", "PIL"),
    "sacrebleu": ("2.4", "sacrebleu"),
    "charset-normalizer": ("3.1", "charset_normalizer"),
}
OLDEST_TORCH = "2.5"
# Extra -> the packages that it needs; any of them may be missing.
EXTRAS = {"serve": ("fastapi", "pydantic", "uvicorn"), "demo": ("babel",), "ctranslate2": ("ctranslate2",)}


@dataclass(frozen=True)
class Check:
    """One thing that was checked, what was found and, if that is wrong, what to do."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def check_machine() -> Iterator[Check]:
    """All checks, one after the other."""
    version = platform.python_version()
    newer = ".".join(map(str, OLDEST_PYTHON))
    yield Check("python", sys.version_info >= OLDEST_PYTHON, f"{version}, {sys.executable}", f"install Python {newer}")
    yield Check("heedful", True, f"{heedful.__version__}, {Path(heedful.__file__).parent}")
    yield _core()
    packages = [_package(name, *needed) for name, needed in PACKAGES.items()]
    torch = _torch()
    yield from (torch, *packages)
    yield from (_extra(name, needed) for name, needed in EXTRAS.items())
    if has_torch() and torch.ok:
        yield from _devices()
    yield _memory()
    yield _disk(Path.cwd())
    if has_torch() and all(each.ok for each in (torch, *packages)):
        yield from _self_test()


def _torch() -> Check:
    """It is not a fault if torch is missing: those who do not train can do without it."""
    if not has_torch():
        return Check("torch", True, "not installed; to train: pip install 'heedful[train]'")
    return _package("torch", OLDEST_TORCH, "torch")


def _core() -> Check:
    """The engine in C++; either it or torch is enough to run models."""
    try:
        found = f"{library.instruction_set()}, {library.LIBRARY}"
    except UserError as error:
        advice = "see docs/installing.md, or pip install 'heedful[train]'"
        found = library.why_not_built() or str(error)
        return Check("core", has_torch(), found, advice)
    return Check("core", True, found)


def _package(name: str, oldest: str, module: str) -> Check:
    advice = f"pip install '{name}>={oldest}'"
    try:
        version = importlib.metadata.version(name)
        importlib.import_module(module)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, False, "not installed", advice)
    except Exception as error:  # whatever a broken package does when it is imported
        return Check(name, False, f"{version}, cannot be imported: {error}", f"{advice} --force-reinstall")
    ok = _numbers(version) >= _numbers(oldest)
    return Check(name, ok, version if ok else f"{version}, older than {oldest}", advice)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def _extra(name: str, needed: tuple[str, ...]) -> Check:
    """Packages that only some commands need; it is not a fault if they are missing."""
    try:
        versions = [f"{each} {importlib.metadata.version(each)}" for each in needed]
    except importlib.metadata.PackageNotFoundError as error:
        return Check(f"for {name}", True, f"{error.name} is not installed; if wanted: pip install 'heedful[{name}]'")
    return Check(f"for {name}", True, ", ".join(versions))


def _devices() -> Iterator[Check]:
    import torch

    from heedful.machine.devices import choose_device

    device = choose_device("auto")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    yield Check("device", True, f"{device.type} ({name})")
    yield Check("cores", True, f"{available_cores()}, {torch.get_num_threads()} threads of torch")


def _memory() -> Check:
    limit = memory_limit()
    advice = f"training needs at least {LEAST_MEMORY // GIBIBYTE} GiB: raise the limit of the container or the process"
    return Check("memory", limit >= LEAST_MEMORY, f"{limit / GIBIBYTE:.1f} GiB may be used", advice)


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{free / GIBIBYTE:.1f} GiB free in {folder}"
    if free < LEAST_DISK:
        return Check("disk", False, found, "models and prepared data go here: make room, or work in another folder")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = "models go here by default: work in another folder, or name one with --out"
        return Check("disk", False, f"{found}, which cannot be written to: {error.strerror}", advice)
    return Check("disk", True, found)


def _self_test() -> Iterator[Check]:
    from heedful.doctor.self_test import ADVICE, SelfTest

    with tempfile.TemporaryDirectory(prefix="heedful-doctor-", ignore_cleanup_errors=True) as folder:
        for name, step in SelfTest(Path(folder)).steps.items():
            try:
                yield Check(name, True, step())
            except Exception as error:  # any failure is what is looked for here
                found = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
                yield Check(name, False, found, ADVICE[name])
                return
