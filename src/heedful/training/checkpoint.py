"""Checkpoints: folders of safetensors and JSON with checksums, written under another name and then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from heedful.files import (
    CHECKPOINT_NAME,
    bytes_of,
    checkpoint_step,
    flush_folder,
    flush_to_disk,
    remove,
    save_tensors,
)
from heedful.files import checkpoint_folders as checkpoint_folders  # for who works with checkpoints
from heedful.storage import TEMPORARY, storage_error, writing

STATE, CHECKSUMS = "state.json", "checksums.json"
# The checkpoint of a step that is being written once more waits under this name until the new one is in its place.
REPLACED = "replaced-"
# Faults of a disk; others, such as a lack of permission, are for the user to mend.
DAMAGE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)


class DamagedCheckpointError(Exception):
    """A checkpoint that cannot be used; the text says why."""


def save_checkpoint(folder: Path, step: int, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any]) -> Path:
    """Write `tensors` (one file per name) and `state`; a kill at any moment leaves the older checkpoints whole."""
    final = folder / f"step-{step:09d}"
    temporary = folder / f"{TEMPORARY}{final.name}"
    try:
        with writing(final, sum(map(bytes_of, tensors.values()))):
            if not folder.is_dir():
                folder.mkdir(parents=True)
                flush_folder(folder.parent)
            remove(temporary)
            temporary.mkdir()
            for name, group in tensors.items():
                save_tensors(temporary / f"{name}.safetensors", group)
            (temporary / STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")
            checksums = {file.name: _checksum(file) for file in sorted(temporary.iterdir())}
            (temporary / CHECKSUMS).write_text(json.dumps(checksums, indent=1), encoding="utf-8")
            for file in temporary.iterdir():
                flush_to_disk(file)
            flush_folder(temporary)
            _put_in_place(temporary, final)
    except BaseException:  # a second Ctrl-C too
        with suppress(OSError):
            recover_checkpoints(folder)
        raise
    return final


def _put_in_place(temporary: Path, final: Path) -> None:
    """Give a complete checkpoint its name; between two renames `recover_checkpoints` finds the one before."""
    replaced = final.with_name(f"{REPLACED}{final.name}")
    if final.exists():  # the same step once more: at the end of a run, or continued from an older checkpoint
        remove(replaced)
        final.rename(replaced)
    temporary.rename(final)
    flush_folder(final.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def recover_checkpoints(folder: Path) -> None:
    """Undo what a kill left half done: a replaced checkpoint gets its name back, half-written ones are removed."""
    if not folder.is_dir():
        return
    for replaced in [*folder.glob(f"{REPLACED}step-*"), *folder.glob(f"{TEMPORARY}replaced")]:
        final = folder / _former_name(replaced)
        if not CHECKPOINT_NAME.fullmatch(final.name):
            continue
        if final.exists():
            shutil.rmtree(replaced, ignore_errors=True)
        else:
            replaced.rename(final)
            flush_folder(folder)
    for leftover in folder.glob(f"{TEMPORARY}*"):
        remove(leftover)


def _former_name(replaced: Path) -> str:
    """The name of a checkpoint before it was to be replaced."""
    if replaced.name != f"{TEMPORARY}replaced":
        return replaced.name.removeprefix(REPLACED)
    # Earlier versions wrote no step into the name.
    try:
        return f"step-{json.loads((replaced / STATE).read_text(encoding='utf-8'))['position']['step']:09d}"
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def load_checkpoint(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """What `save_checkpoint` wrote, or a DamagedCheckpointError if it is not as it was written."""
    try:
        _compare_checksums(path)
        tensors = {file.stem: _load_tensors(file) for file in sorted(path.glob("*.safetensors"))}
        state = _read_object(path / STATE)
    except OSError as error:
        if error.errno not in DAMAGE:
            raise storage_error(error, Path(error.filename or path)) from None
        missing = isinstance(error, FileNotFoundError)
        name = Path(error.filename).name if error.filename else "a file"
        raise DamagedCheckpointError(f"{name} is missing" if missing else f"{name}: {error.strerror}") from None
    return tensors, state


def is_whole(path: Path) -> bool:
    """Whether a checkpoint can be loaded."""
    try:
        load_checkpoint(path)
    except DamagedCheckpointError:
        return False
    return True


def whole_checkpoints(paths: Sequence[Path], tell: Callable[[str], None]) -> list[Path]:
    """The checkpoints that can be loaded; the others are named, as left out of a mean."""
    whole = [path for path in paths if is_whole(path)]
    for path in paths:
        if path not in whole:
            tell(f"the checkpoint {path} is damaged: the mean of the last ones leaves it out")
    return whole


def _compare_checksums(path: Path) -> None:
    """Raise a DamagedCheckpointError for a file that has changed; earlier versions wrote no checksums."""
    if not (path / CHECKSUMS).exists():
        return
    for name, expected in _read_object(path / CHECKSUMS).items():
        file = path / Path(name).name
        if not isinstance(expected, dict) or expected.keys() != {"bytes", "blake2b"}:
            raise DamagedCheckpointError(f"{CHECKSUMS} does not hold checksums")
        size = file.stat().st_size
        if size != expected["bytes"]:
            raise DamagedCheckpointError(f"{file.name} has {size:,} bytes in place of {expected['bytes']:,}")
        if _checksum(file) != expected:
            raise DamagedCheckpointError(f"{file.name} does not have the checksum that was saved with it")


def _checksum(file: Path) -> dict[str, Any]:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16))
        return {"bytes": content.tell(), "blake2b": digest.hexdigest()}


def _load_tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except SafetensorError as error:
        raise DamagedCheckpointError(f"{file.name} cannot be read: {error}") from None


def _read_object(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    if not content:
        raise DamagedCheckpointError(f"{file.name} is empty")
    try:
        data = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise DamagedCheckpointError(f"{file.name} is not valid JSON") from None
    if not isinstance(data, dict):
        raise DamagedCheckpointError(f"{file.name} holds no JSON object")
    return data


def prune_checkpoints(folder: Path, keep: set[int]) -> None:
    """Remove what a kill left half-written, and all checkpoints but the newest two and those of steps in `keep`."""
    recover_checkpoints(folder)
    for old in checkpoint_folders(folder)[:-2]:
        if checkpoint_step(old) not in keep:
            _drop(old)


def drop_checkpoints_after(folder: Path, step: int) -> None:
    """Remove the checkpoints of later steps: those of a run that had to go back, because they were damaged."""
    for path in checkpoint_folders(folder):
        if checkpoint_step(path) > step:
            _drop(path)


def drop_checkpoint(folder: Path, step: int) -> None:
    """Remove the checkpoint of a step, if there is one."""
    path = folder / f"step-{step:09d}"
    if path.exists():
        _drop(path)


def _drop(path: Path) -> None:
    # Renamed first: a kill must not leave a checkpoint of which half the files are gone.
    leaving = path.with_name(f"{TEMPORARY}{path.name}")
    with suppress(OSError):
        remove(leaving)
        path.rename(leaving)
    shutil.rmtree(leaving, ignore_errors=True)
