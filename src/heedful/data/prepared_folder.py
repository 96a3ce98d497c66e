"""Data that is prepared once, in a folder, and used again as long as it comes from the same content."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from heedful.data.progress import ThrottledProgress
from heedful.data.text_files import read_raw_blocks
from heedful.errors import UserError
from heedful.files import write_file


@dataclass(frozen=True)
class PreparedFolder:
    """A folder of prepared files, the key of the content that they come from, and what is known of them."""

    path: Path
    key: str
    facts: dict[str, Any]


def content_key(options: object, files: Sequence[Path], progress: ThrottledProgress) -> str:
    """A key that changes with the bytes of the files, and with the options."""
    key = blake2b(json.dumps(options).encode("utf-8"), digest_size=16)
    total, done = sum(path.stat().st_size for path in files), 0
    for path in files:
        content = blake2b(digest_size=32)
        for block in read_raw_blocks(path):
            content.update(block)
            done += len(block)
            progress("comparing files", done, total)
        key.update(content.digest())
    return key.hexdigest()


def refuse_other_data(key: str, expected: str | None, names: Sequence[str], folder: Path) -> None:
    """Raise a UserError if a run is to be continued with other data than it began with."""
    if expected not in (None, key):
        raise UserError(
            f"the contents of the data files ({', '.join(names)}) have changed since the run in {folder.parent} began: "
            "put them back to continue it, or choose another --out for a new run"
        )


def prepare_once(folder: Path, key: str, make: Callable[[Path], dict[str, Any]]) -> PreparedFolder:
    """What `make` writes into an empty folder, unless an earlier call with the same key has done it.

    It is written under another name and then renamed: a kill leaves nothing half done. `make` gives the facts.
    """
    prepared, partial = folder / "prepared", folder / "prepared.partial"
    meta = prepared / "meta.json"
    if meta.exists():
        content = json.loads(meta.read_text(encoding="utf-8"))
        if content["key"] == key:
            return PreparedFolder(prepared, key, content["facts"])
    for old in (partial, prepared):
        shutil.rmtree(old, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        facts = make(partial)
        write_file(partial / "meta.json", json.dumps({"key": key, "facts": facts}))
        partial.rename(prepared)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return PreparedFolder(prepared, key, facts)
