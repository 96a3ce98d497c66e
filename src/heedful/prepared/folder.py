"""Data that is prepared once, in a folder, and used again as long as it comes from the same content."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.files import flush_folder, write_file
from heedful.prepared.checksums import find_damage, seal_folder
from heedful.prepared.progress import ThrottledProgress
from heedful.text.corpus_file import CorpusFile
from heedful.text.text_files import read_raw_blocks


@dataclass(frozen=True)
class PreparedFolder:
    """A folder of prepared files, the key of the content that they come from, and what is known of them.

    `remark` says why files that were there have been prepared anew, if they were damaged.
    """

    path: Path
    key: str
    facts: dict[str, Any]
    remark: str | None = None


def reading_choices(files: Sequence[CorpusFile], layouts: Sequence[object] = ()) -> list[object]:
    """What belongs into a key of how files are read; nothing, if they are UTF-8 and laid out as usual."""
    encodings = [file.encoding for file in files]
    return [encodings, list(layouts)] if any(encodings) or layouts else []


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
    meta, damage = read_prepared(prepared)
    if meta is not None and meta["key"] == key:
        return PreparedFolder(prepared, key, meta["facts"])
    for old in (partial, prepared):
        shutil.rmtree(old, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        facts = make(partial)
        complete(partial, {"key": key, "facts": facts})
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return PreparedFolder(prepared, key, facts, made_anew(prepared, damage))


def complete(partial: Path, meta: dict[str, Any]) -> None:
    """Give a folder of prepared files, with what is known of them, its name, once all of it is on the disk."""
    write_file(partial / "meta.json", json.dumps(meta))
    seal_folder(partial)
    partial.rename(partial.with_name("prepared"))
    flush_folder(partial.parent)


def read_prepared(prepared: Path) -> tuple[dict[str, Any] | None, str | None]:
    """What `complete` noted of prepared files, if every one of them is as it was; else what is damaged, if any are."""
    if not prepared.is_dir():
        return None, None
    if damage := find_damage(prepared):
        return None, damage
    meta: dict[str, Any] = json.loads((prepared / "meta.json").read_text(encoding="utf-8"))
    return meta, None


def made_anew(prepared: Path, damage: str | None) -> str | None:
    """The line that tells a user of damage."""
    return damage and f"the prepared data in {prepared} is damaged ({damage}): it was made anew"
