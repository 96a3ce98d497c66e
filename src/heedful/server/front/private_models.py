"""The models of a server as they were when it started: a private copy, whatever becomes of their folders."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from heedful.errors import UserError
from heedful.files import file_version
from heedful.server.settings import ServerSettings
from heedful.weights_index import stale_shards, weights_files

PREFIX = "heedful-serve-"
# What a model folder is read from; the rest of it is for people and for further training.
SUFFIXES = (".json", ".safetensors")
# Bytes that must still be free afterwards.
SPARE_BYTES = 16 * 2**20
# Seconds after which a copy that nobody holds counts as left behind by a server, not as being made.
STALE_SECONDS = 60.0


@contextmanager
def private_models(settings: ServerSettings) -> Iterator[ServerSettings]:
    """The settings with the server's own folders, which all its workers map, including those started later.

    A file overwritten in place would change the answers of a running server, and one cut short would end its workers.
    The copy is removed when the server ends; after a crash its workers remove it, or else the next server does.
    """
    files = {folder: _files(Path(folder)) for folder in settings.models.values()}
    root = _new_folder(sum(status.st_size for found in files.values() for status in found.values()))
    lock = _lock(root)
    try:
        copies = {
            folder: str(_copy(Path(folder), found, root / str(number)))
            for number, (folder, found) in enumerate(files.items())
        }
        models = {name: copies[folder] for name, folder in settings.models.items()}
        yield replace(settings, models=models, originals=settings.models, private=str(root))
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(root, ignore_errors=True)


def _files(folder: Path) -> dict[Path, os.stat_result]:
    """The files of a model; whether they are right is for the worker to judge."""
    if not folder.is_dir():
        raise UserError(f"there is no model folder {folder}")
    try:
        stale = stale_shards(folder, [file.name for file in weights_files(folder)])
        found = sorted(file for file in {*folder.iterdir()} - {*stale} if file.suffix in SUFFIXES and file.is_file())
        return {file: file.stat() for file in found}
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from None


def _copy(folder: Path, files: dict[Path, os.stat_result], into: Path) -> Path:
    """Copy a model's files into a folder of the same name, which is what the model is called."""
    target = into / folder.resolve().name
    target.mkdir(parents=True)
    trouble: OSError | None = None
    try:
        for file in files:
            shutil.copyfile(file, target / file.name)
    except OSError as error:
        trouble = error
    # All files are listed again: the shards of other weights have other names.
    if _versions(_files(folder)) != _versions(files):
        raise UserError(f"{folder} was changed while it was read: try again when it is complete")
    if trouble is not None:
        raise UserError(f"cannot copy {folder} to {target}: {trouble.strerror}: set TMPDIR to another folder")
    return target


def _versions(files: Mapping[Path, os.stat_result]) -> dict[Path, tuple[int, int, int]]:
    return {file: file_version(status) for file, status in files.items()}


def _new_folder(size: int) -> Path:
    """A folder with room for that many bytes."""
    parents = _parents()
    for parent in parents:
        _remove_stale(parent)
        with suppress(OSError):
            if shutil.disk_usage(parent).free >= size + SPARE_BYTES:
                return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    raise UserError(
        f"the server keeps a copy of its models, which takes {size / 2**20:,.0f} MiB, and there is no room for it in "
        f"{' or '.join(map(str, parents))}: set TMPDIR to a folder that has it"
    )


def _parents() -> list[Path]:
    """Where a copy may go: where the user says, else on a disk, since /tmp is often in memory."""
    usual = [Path(tempfile.gettempdir())]
    disk = Path("/var/tmp")
    if "TMPDIR" not in os.environ and sys.platform != "win32" and disk.is_dir():
        usual.insert(0, disk)
    return usual


def _lock(folder: Path) -> int | None:
    """Lock a folder, so that neither another server nor a program that tidies up takes it for one left behind."""
    try:
        import fcntl
    except ImportError:  # Windows, where nobody can remove a file that is open
        return os.open(folder / "lock", os.O_CREAT | os.O_RDWR)
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


def _remove_stale(parent: Path) -> None:
    """Remove the copies of servers that were killed together with all their workers."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime < STALE_SECONDS:
                continue
            if sys.platform == "win32":
                (folder / "lock").unlink()
                shutil.rmtree(folder, ignore_errors=True)
            elif folder.stat().st_uid == os.getuid() and not folder.is_symlink():
                held = _lock(folder)
                if held is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(held)
