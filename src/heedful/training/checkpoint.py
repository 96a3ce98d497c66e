"""Checkpoints: folders of safetensors and JSON with checksums, written under another name and then renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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
from heedful.files import checkpoint_folders as checkpoint_folders  # for code that works with checkpoints
from heedful.storage import TEMPORARY, storage_error, writing
from heedful.training.stored_tensors import PIECES, Stored, load_group, read_object, stored_tensors
from heedful.training.stored_tensors import DamagedCheckpointError as DamagedCheckpointError

STATE, CHECKSUMS = "state.json", "checksums.json"
# A checkpoint that a new one of the same step replaces has this prefix until the new one is in place.
REPLACED = "replaced-"
# Disk faults; the user has to fix others, such as missing permissions.
DAMAGE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO)


def save_checkpoint(folder: Path, step: int, tensors: dict[str, dict[str, Tensor]], state: dict[str, Any]) -> Path:
    """Write `tensors` (one file per name) and `state`; a kill at any moment leaves older checkpoints intact."""
    final = checkpoint_path(folder, step)
    with completing(final, sum(map(bytes_of, tensors.values()))):
        temporary = begin_checkpoint(final)
        files = {name: temporary / f"{name}.safetensors" for name in tensors}
        checksums = {file.name: write_tensors(file, tensors[name]) for name, file in files.items()}
        end_checkpoint(final, {STATE: json.dumps(state, indent=1)}, checksums)
    return final


def checkpoint_path(folder: Path, step: int) -> Path:
    """The folder of the checkpoint of a step."""
    return folder / f"step-{step:09d}"


@contextmanager
def completing(final: Path, size: int) -> Iterator[None]:
    """A block that writes a checkpoint of this many bytes; if it fails, a UserError says why, and nothing is left."""
    try:
        with writing(final, size):
            yield
    except BaseException:  # a second Ctrl-C too
        with suppress(OSError):
            recover_checkpoints(final.parent)
        raise


def being_written(final: Path) -> Path:
    """The path of a checkpoint's folder until it is complete."""
    return final.with_name(f"{TEMPORARY}{final.name}")


def begin_checkpoint(final: Path) -> Path:
    """An empty folder for the files of a checkpoint."""
    folder, temporary = final.parent, being_written(final)
    if not folder.is_dir():
        folder.mkdir(parents=True)
        flush_folder(folder.parent)
    remove(temporary)
    temporary.mkdir()
    return temporary


def write_tensors(file: Path, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Write a file of tensors to disk, and return its checksum."""
    save_tensors(file, tensors)
    checksum = _checksum(file)
    flush_to_disk(file)
    return checksum


def end_checkpoint(final: Path, texts: dict[str, str], checksums: dict[str, dict[str, Any]]) -> None:
    """Add a checkpoint's texts and all checksums to its files of tensors, and give the folder its final name."""
    temporary = being_written(final)
    for name, text in texts.items():
        (temporary / name).write_text(text, encoding="utf-8")
    checksums = {**checksums, **{name: _checksum(temporary / name) for name in texts}}
    (temporary / CHECKSUMS).write_text(json.dumps(dict(sorted(checksums.items())), indent=1), encoding="utf-8")
    for name in (*texts, CHECKSUMS):
        flush_to_disk(temporary / name)
    flush_folder(temporary)
    _put_in_place(temporary, final)


def _put_in_place(temporary: Path, final: Path) -> None:
    """Give a complete checkpoint its name; after a kill between renames, `recover_checkpoints` finds the old one."""
    replaced = final.with_name(f"{REPLACED}{final.name}")
    if final.exists():  # the same step again: at the end of a run, or continued from an older checkpoint
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
    """The name of a checkpoint before its replacement began."""
    if replaced.name != f"{TEMPORARY}replaced":
        return replaced.name.removeprefix(REPLACED)
    # Earlier versions did not put the step into the name.
    try:
        return f"step-{json.loads((replaced / STATE).read_text(encoding='utf-8'))['position']['step']:09d}"
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def load_checkpoint(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The whole tensors of a checkpoint by group, and its state; a DamagedCheckpointError if they cannot be used."""
    stored, state = check_checkpoint(path)
    with naming_damage(path):
        groups = {name.partition("/")[0] for name in stored}
        if not (path / PIECES).exists():
            groups |= {file.stem for file in path.glob("*.safetensors")}  # one may be empty
        return {group: load_group(path, group, stored) for group in sorted(groups)}, state


def check_checkpoint(path: Path, *, checksums: bool = True) -> tuple[dict[str, Stored], dict[str, Any]]:
    """What a checkpoint holds, and its state; a DamagedCheckpointError if it is not as it was written."""
    with naming_damage(path):
        if checksums:
            _compare_checksums(path)
        return stored_tensors(path), read_object(path / STATE)


@contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """A block that reads a checkpoint: files that are missing, or that the disk cannot read, count as damage."""
    try:
        yield
    except OSError as error:
        if error.errno not in DAMAGE:
            raise storage_error(error, Path(error.filename or path)) from None
        missing = isinstance(error, FileNotFoundError)
        name = Path(error.filename).name if error.filename else "a file"
        raise DamagedCheckpointError(f"{name} is missing" if missing else f"{name}: {error.strerror}") from None


def is_whole(path: Path) -> bool:
    """Whether a checkpoint can be loaded."""
    try:
        check_checkpoint(path)
    except DamagedCheckpointError:
        return False
    return True


def whole_checkpoints(paths: Sequence[Path], tell: Callable[[str], None]) -> list[Path]:
    """The checkpoints that can be loaded; the others are reported as left out of the mean."""
    whole = [path for path in paths if is_whole(path)]
    for path in paths:
        if path not in whole:
            tell(f"the checkpoint {path} is damaged: the mean of the last ones leaves it out")
    return whole


def _compare_checksums(path: Path) -> None:
    """Raise a DamagedCheckpointError for a file that has changed; earlier versions wrote no checksums."""
    if not (path / CHECKSUMS).exists():
        return
    for name, expected in read_object(path / CHECKSUMS).items():
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


def prune_checkpoints(folder: Path, keep: set[int]) -> None:
    """Remove what a kill left half-written, and all checkpoints but the newest two and those of steps in `keep`."""
    recover_checkpoints(folder)
    for old in checkpoint_folders(folder)[:-2]:
        if checkpoint_step(old) not in keep:
            _drop(old)


def drop_checkpoints_after(folder: Path, step: int) -> None:
    """Remove the checkpoints of later steps, left by a run that had to go back because they were damaged."""
    for path in checkpoint_folders(folder):
        if checkpoint_step(path) > step:
            _drop(path)


def drop_checkpoint(folder: Path, step: int) -> None:
    """Remove the checkpoint of a step, if there is one."""
    path = checkpoint_path(folder, step)
    if path.exists():
        _drop(path)


def _drop(path: Path) -> None:
    # Renamed first: a kill must not leave a checkpoint with half its files gone.
    leaving = path.with_name(f"{TEMPORARY}{path.name}")
    with suppress(OSError):
        remove(leaving)
        path.rename(leaving)
    shutil.rmtree(leaving, ignore_errors=True)
