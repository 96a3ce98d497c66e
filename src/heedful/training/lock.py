"""The lock of a model folder: one run at a time; a restart of the same run may wait for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from heedful.errors import UserError
from heedful.files import write_file
from heedful.storage import storage_error, writing

# What torchrun calls its run, the same through all restarts and on all nodes; without --rdzv-id, it may be the same for
# runs that have nothing to do with each other.
LAUNCH, UNNAMED = "TORCHELASTIC_RUN_ID", "none"


@contextmanager
def locked(out: Path, patience_seconds: float, tell: Callable[[str], None]) -> Iterator[None]:
    """A block in which the model folder is locked; the lock ends with this process, however that ends.

    A node that was cut off may still be at work when torchrun starts its run again on the others: this waits for
    an earlier start of the same run. Any other run is refused at once.
    """
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: choose another folder with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / "run").is_dir():
        raise UserError(f"{out} already holds other files: choose another folder with --out")
    with writing(out / "run"):
        (out / "run").mkdir(parents=True, exist_ok=True)
    lock, launch = filelock.FileLock(out / "run" / "lock"), out / "run" / "launch"
    try:
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            if not _is_this_launch(launch):
                raise
            tell(f"an earlier start of this run is still at work in {out}: waiting for it to end")
            lock.acquire(timeout=patience_seconds)
    except filelock.Timeout:
        raise UserError(f"another run is at work in {out}: wait for it, or choose another --out") from None
    except NotImplementedError:
        raise UserError(f"the file system of {out} does not support locks: choose an --out on another one") from None
    except OSError as error:
        raise storage_error(error, out / "run" / "lock", written=True) from None
    try:
        _note_launch(launch)
        yield
    finally:
        lock.release()


def _launch() -> str | None:
    """The name that tells this launch from all others, if there is one."""
    name = os.environ.get(LAUNCH)
    return None if name == UNNAMED else name


def _is_this_launch(file: Path) -> bool:
    try:
        return _launch() is not None and file.read_text(encoding="utf-8") == _launch()
    except (OSError, ValueError):
        return False


def _note_launch(file: Path) -> None:
    name = _launch()
    if name is not None:
        write_file(file, name)
    else:
        with writing(file):
            file.unlink(missing_ok=True)
