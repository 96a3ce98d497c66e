"""The folder of a demo, which may replace that of an earlier one."""

from __future__ import annotations

import shutil
from pathlib import Path

import filelock

from heedful.errors import UserError


def fresh_folder(out: Path) -> Path:
    """An empty folder for the demo's data, inside the model folder; the results of an earlier demo are removed."""
    if out.exists():
        _remove_demo(out)
    data = out / "run" / "demo"
    data.mkdir(parents=True)
    return data


def _remove_demo(out: Path) -> None:
    if not (out / "run" / "demo").is_dir():
        raise UserError(f"{out} exists and is not of an earlier demo: choose another folder with --out")
    lock = filelock.FileLock(out / "run" / "lock")
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        raise UserError(f"another demo is at work in {out}: wait for it, or choose another --out") from None
    lock.release()
    shutil.rmtree(out)
