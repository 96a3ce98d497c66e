"""Finds and loads the shared library of the engine."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path

from heedful.errors import UserError

ABI_VERSION = 4  # heedful_abi_version() of core/interface.h
FILE_NAMES = {"win32": "heedful.dll", "darwin": "libheedful.dylib"}
LIBRARY = Path(__file__).parent / FILE_NAMES.get(sys.platform, "libheedful.so")
NOT_BUILT = Path(__file__).parent / "not_built.txt"


def why_not_built() -> str | None:
    """Why there is no library, in one line; None if there is one."""
    if LIBRARY.exists():
        return None
    if NOT_BUILT.exists():
        return "not built: " + "; ".join(NOT_BUILT.read_text(encoding="utf-8", errors="replace").splitlines())
    return f"{LIBRARY} is missing: reinstall heedful"


@cache
def library() -> ctypes.CDLL:
    """The library, loaded at the first call; a UserError says why there is none."""
    if reason := why_not_built():
        raise UserError(f"heedful's C++ core cannot be used: {reason}")
    try:
        loaded = ctypes.CDLL(str(LIBRARY))
        version = loaded.heedful_abi_version()
    except (OSError, AttributeError) as error:
        raise UserError(f"heedful's C++ core cannot be loaded: {error}: reinstall heedful") from None
    if version != ABI_VERSION:
        raise UserError(f"{LIBRARY} has interface {version}, expected {ABI_VERSION}: reinstall heedful")
    loaded.heedful_instruction_set.restype = ctypes.c_char_p
    return loaded


def instruction_set() -> str:
    """The name of the instruction set that the library uses on this machine."""
    name: bytes = library().heedful_instruction_set()
    return name.decode("ascii")
