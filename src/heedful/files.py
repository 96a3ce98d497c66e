"""Files that are replaced in one step: a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.storage import TEMPORARY, writing
from heedful.weights_seal import seal, unsealed

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

_MOST_LINKS = 40
CHECKPOINT_NAME = re.compile(r"step-\d{9,}", re.ASCII)


@contextmanager
def replacing(path: Path, size: int | None = None) -> Iterator[Path]:
    """Where to write a file that takes the place of `path` when the block ends; if it fails, nothing is left of it.

    Others may write to the same path at the same time: the last one to finish is whole. What a link leads to is
    replaced, not the link, and the permissions of a file that was there are kept.
    """
    path = path.resolve() if path.is_symlink() and not is_open_file(path) else path
    if path.exists() and not path.is_file():  # a device or a pipe is written to, not replaced
        with writing(path, size):
            yield path
        return
    with writing(path, size):
        import tempfile  # output most often goes to no file

        folder = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY}{path.name}.", dir=path.parent))
    with _replaced_from(folder, path, size) as temporary:
        yield temporary


def is_open_file(path: Path) -> bool:
    """Whether a name, such as /dev/stdout or /dev/fd/63, stands for what this process has open."""
    places = {Path("/dev/fd").resolve(), Path("/proc/self/fd").resolve()}
    for _ in range(_MOST_LINKS):
        if path.name.isdecimal() and path.parent.resolve() in places:
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False


@contextmanager
def _replaced_from(folder: Path, path: Path, size: int | None) -> Iterator[Path]:
    """A file in a folder of its own, which takes the place of `path`; the folder is removed at the end."""
    temporary = folder / path.name
    try:
        with writing(path, size):
            folder.mkdir(exist_ok=True)
            yield temporary
            if path.exists():
                temporary.chmod(path.stat().st_mode & 0o7777)
            flush_to_disk(temporary)
            temporary.replace(path)
            flush_folder(path.parent)
    finally:
        with suppress(OSError):
            remove(folder)


@contextmanager
def replacing_our_own(path: Path, size: int) -> Iterator[Path]:
    """The same for a file of a model or a run, which nobody else writes: a kill leaves behind one name that we know."""
    folder = path.with_name(f"{TEMPORARY}{path.name}")
    with writing(path, size):
        remove(folder)
    with _replaced_from(folder, path, size) as temporary:
        yield temporary


def write_file(path: Path, text: str) -> None:
    """Replace a text file in one step."""
    _write_bytes(path, text.encode("utf-8"))


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]], tokenizer: bytes | None) -> None:
    """Replace a safetensors file of arrays in one step; it has checksums as a model's weights do."""
    from safetensors.numpy import save

    content = save(arrays, unsealed(tokenizer))
    with replacing_our_own(path, len(content)) as temporary:
        temporary.write_bytes(content)
        seal(temporary)


def _write_bytes(path: Path, content: bytes) -> None:
    with replacing_our_own(path, len(content)) as temporary:
        temporary.write_bytes(content)


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file, with the permissions that any new file gets."""
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode  # the library makes a file of its own, which nobody else may read
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
    path.chmod(mode)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `out` when all is well; otherwise nothing is left behind.

    `out` must not be there, or be empty.
    """
    import tempfile

    absent = [each for each in (out.parent, *out.parent.parents) if not each.exists()]
    try:
        with writing(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=out.parent, prefix=TEMPORARY) as inside:
                # Inside, because a temporary folder itself is closed to others.
                place = Path(inside, "folder")
                place.mkdir()
                yield place
                if out.is_dir():
                    out.rmdir()
                place.rename(out)
    except BaseException:
        for each in absent:
            with suppress(OSError):
                each.rmdir()
        raise


def file_version(status: os.stat_result) -> tuple[int, int, int]:
    """What distinguishes a file from another that takes its place, or from itself before it was changed."""
    return status.st_ino, status.st_size, status.st_mtime_ns


def bytes_of(tensors: dict[str, Tensor]) -> int:
    """The bytes that tensors take in a file, without its header."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def checkpoint_folders(folder: Path) -> list[Path]:
    """The checkpoints in a folder, oldest first, and nothing else that is there."""
    if not folder.is_dir():
        return []
    found = [each for each in folder.iterdir() if CHECKPOINT_NAME.fullmatch(each.name) and each.is_dir()]
    return sorted(found, key=checkpoint_step)


def is_run(folder: Path) -> bool:
    """Whether a training keeps in this folder what it needs to continue."""
    return any((folder / name).is_file() for name in ("lock", "config.json"))


def checkpoint_step(path: Path) -> int:
    """The step of a checkpoint, by its name."""
    return int(path.name.removeprefix("step-"))


def remove(path: Path) -> None:
    """Remove a file or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Wait until a file's contents are on the disk: a rename must not get there before them."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
