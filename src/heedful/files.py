"""Files that are replaced in one step: a kill at any moment leaves the old one or the new one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

TEMPORARY = "writing-"


def write_file(path: Path, text: str) -> None:
    """Replace a text file in one step."""
    with _replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Replace a safetensors file in one step."""
    with _replacing(path) as temporary:
        save_tensors(temporary, tensors, metadata)


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file, with the permissions that any new file gets."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode  # the library makes a file of its own, which nobody else may read
    try:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path, metadata)
    except SafetensorError as error:
        raise OSError(None, str(error), str(path)) from None
    path.chmod(mode)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file to write that then takes the place of `path`; if that fails, it is removed."""
    temporary = path.with_name(f"{TEMPORARY}{path.name}")
    try:
        yield temporary
        flush_to_disk(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A folder to fill, which becomes `out` when all is well; otherwise nothing is left behind.

    `out` must not be there, or be empty.
    """
    absent = [each for each in (out.parent, *out.parent.parents) if not each.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=TEMPORARY) as inside:
            # Inside, because a temporary folder itself is closed to others.
            place = Path(inside, "folder")
            place.mkdir()
            yield place
            if out.is_dir():
                out.rmdir()
            place.rename(out)
    except BaseException as error:
        for each in absent:
            with suppress(OSError):
                each.rmdir()
        if isinstance(error, OSError):
            raise UserError(f"cannot write {out}: {error.strerror or error}") from None
        raise


def whole_lines(path: Path) -> list[str]:
    """The lines of a file that is being written, or was when its writer was killed: without half a line at the end."""
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].split("\n")[:-1]


def flush_to_disk(path: Path) -> None:
    """Wait until a file's contents are on the disk: a rename must not get there before them."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
