"""Digests of files, remembered for as long as the file system says that the files have not been touched."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from heedful.files import write_file
from heedful.prepared.progress import ThrottledProgress
from heedful.text.text_files import read_raw_blocks

# A file that changed this recently may change again without a later modification time.
SETTLED_SECONDS = 2.0

# Size, modification time, change time and inode number: no tool sets all of them at will.
State = tuple[int, int, int, int]


class FileDigests:
    """The digests of files' contents; for unchanged files, they are read from a file."""

    def __init__(self, path: Path, progress: ThrottledProgress) -> None:
        self._path, self._progress = path, progress
        self._known = _read(path)

    def of(self, files: Sequence[Path]) -> list[bytes]:
        """The digest of each file; only these are remembered."""
        states = [_state(file) for file in files]
        total = sum(state[0] for state in states if state not in self._known)
        now, done = time.time(), 0
        digests: list[bytes] = []
        settled: dict[State, bytes] = {}
        for file, state in zip(files, states, strict=True):
            digest = self._known.get(state)
            if digest is None:
                content = blake2b(digest_size=32)
                for block in read_raw_blocks(file):
                    content.update(block)
                    done += len(block)
                    self._progress("comparing files", done, total)
                digest = content.digest()
            digests.append(digest)
            if max(state[1:3]) < (now - SETTLED_SECONDS) * 1e9:
                settled[state] = digest
        self._remember(settled)
        return digests

    def _remember(self, digests: dict[State, bytes]) -> None:
        if digests != self._known:
            entries = [[*state, digest.hex()] for state, digest in digests.items()]
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self._path, json.dumps(entries) + "\n")


def _state(file: Path) -> State:
    state = file.stat()
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino


def _read(path: Path) -> dict[State, bytes]:
    """What was remembered; nothing if the file is missing or makes no sense."""
    with suppress(OSError, ValueError, TypeError):
        return dict(_entries(json.loads(path.read_text(encoding="utf-8"))))
    return {}


def _entries(content: list[list[object]]) -> Iterator[tuple[State, bytes]]:
    for size, changed, touched, number, digest in content:
        yield (int(str(size)), int(str(changed)), int(str(touched)), int(str(number))), bytes.fromhex(str(digest))
