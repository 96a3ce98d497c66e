"""What a system says when a file cannot be read or written, in words that help."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heedful.errors import UserError

# What a file or a folder is called while it is being written.
TEMPORARY = "writing-"
AGAIN = "then give the same command again"
# What is wrong, and what to do about it.
REASONS = {
    errno.ENOSPC: ("the disk is full", f"free some room there, {AGAIN}"),
    errno.EDQUOT: ("your disk quota is used up", f"free some room there, {AGAIN}"),
    errno.EFBIG: ("it exceeds the largest file size that is allowed", f"raise that limit (ulimit -f), {AGAIN}"),
    errno.EROFS: ("the file system is read-only", f"make it writable, {AGAIN}, or choose another place"),
    errno.EACCES: ("permission denied", f"check its permissions and those of its folder, {AGAIN}"),
    errno.EPERM: ("the system does not permit it", f"check its permissions and those of its folder, {AGAIN}"),
    errno.EIO: ("the disk reports an input/output error", "see the system's log; the disk may be failing"),
    errno.EMFILE: ("too many files are open", f"raise the limit (ulimit -n) or give fewer --workers, {AGAIN}"),
    errno.ENFILE: ("the system has too many files open", f"close some programs, {AGAIN}"),
}
# These come from writing alone; the first two are worth a look at the room that there is.
LACK_OF_ROOM = (errno.ENOSPC, errno.EDQUOT)
WRITING_ALONE = (*LACK_OF_ROOM, errno.EFBIG, errno.EROFS)


@contextmanager
def writing(path: Path, size: int | None = None) -> Iterator[None]:
    """A block that writes to a path: what the system refuses becomes a UserError with the path and what to do.

    `size` is the number of bytes that are to be written, where it is known. An error about another file keeps its
    name.
    """
    from safetensors import SafetensorError

    try:
        yield
    except BrokenPipeError:  # the reader of standard output has gone, which is not a fault
        raise
    except OSError as error:
        other = _another_file(error, path)
        raise (storage_error(error, other) if other else storage_error(error, path, size, written=True)) from None
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        code = int(number[1])
        raise storage_error(OSError(code, os.strerror(code)), path, size, written=True) from None


def _another_file(error: OSError, path: Path) -> Path | None:
    """The file that an error names, unless it is a temporary one, or a folder that the path lies in."""
    if not isinstance(error.filename, str | os.PathLike):
        return None
    named = Path(error.filename)
    if named in (path, *path.parents) or any(part.startswith(TEMPORARY) for part in named.parts):
        return None
    return named


def storage_error(error: OSError, path: Path | None, size: int | None = None, written: bool = False) -> UserError:
    """The UserError for what a system refused to do with a path; `written` says that it was surely being written.

    Without a path, it is about standard output.
    """
    # numpy reports a file that could not be written completely with an error that has no number.
    number = errno.ENOSPC if error.errno is None and "written" in str(error) else error.errno
    name = path or "standard output"
    begin = f"cannot write {name}: " if written or number in WRITING_ALONE else f"{name}: "
    if number == errno.ENOENT and path is not None and not path.parent.exists():
        return UserError(f"{begin}there is no folder {path.parent}")
    reason, advice = REASONS.get(number or 0, (error.strerror or str(error), None))
    room = _room(path, size) if number in LACK_OF_ROOM and path is not None else ""
    return UserError(f"{begin}{reason}{room}" + (f": {advice}" if advice else ""))


def _room(path: Path, size: int | None) -> str:
    """How much is needed and how much is free, as far as it is known."""
    import shutil  # only for faults

    if path.exists() and not (path.is_file() or path.is_dir()):  # a device
        return ""
    place = next(each for each in path.absolute().parents if each.is_dir())
    known = [f"{_readable(size)} needed"] if size is not None else []
    with suppress(OSError):
        known.append(f"{_readable(shutil.disk_usage(place).free)} free")
    return f" ({', '.join(known)})" if known else ""


def _readable(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 10**6 else f"{size / 1e3:.1f} kB"
