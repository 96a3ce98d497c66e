"""Data that is prepared once, in a folder, and reused as long as it comes from the same content."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.files import flush_folder, write_file
from heedful.prepared.checksums import find_damage, seal_folder
from heedful.prepared.data_report import REPORT_NAME, DataReport
from heedful.prepared.file_digests import FileDigests
from heedful.prepared.progress import ThrottledProgress
from heedful.text.corpus_file import CorpusFile
from heedful.text.tokenizer import Tokenizer

FILES_CHANGED = "a file of the corpus changed while it was being read: start again"


@dataclass(frozen=True)
class Ingredients:
    """The files that data is prepared from, what messages call them, and all choices in preparing it."""

    files: list[Path]
    names: list[str]
    choices: list[object]

    @classmethod
    def of_text(
        cls,
        files: Sequence[CorpusFile],
        choices: Sequence[object],
        tokenizer: Tokenizer | None,
        layouts: Sequence[object] = (),
    ) -> "Ingredients":
        """Text files, perhaps with a given tokenizer; `layouts` are those of unusual table files."""
        given = tokenizer and blake2b(tokenizer.to_json().encode("utf-8")).hexdigest()
        encodings = [file.encoding for file in files]
        # Nothing is added for UTF-8 files with the usual layout: their keys are older than these choices.
        reading = [encodings, list(layouts)] if any(encodings) or layouts else []
        paths, names = [file.path for file in files], [file.shown_name for file in files]
        return cls(paths, names, [*choices, given, *reading])

    def key(self, digests: FileDigests) -> str:
        """A key that changes with the bytes of the files, and with the choices."""
        key = blake2b(json.dumps(self.choices).encode("utf-8"), digest_size=16)
        for digest in digests.of(self.files):
            key.update(digest)
        return key.hexdigest()

    def states(self) -> list[tuple[int, int]]:
        """Size and modification time of each file, which show whether one changed while it was being read."""
        states = [path.stat() for path in self.files]
        return [(state.st_size, state.st_mtime_ns) for state in states]


@dataclass(frozen=True)
class Expected:
    """The data that a run began with, by its key; `is_checked` if another process has just compared all of it."""

    key: str
    is_checked: bool = False


@dataclass(frozen=True)
class PreparedFolder:
    """A folder of prepared files, the key of what they were made from, what is known about them, and their report.

    `remark` says why files that were there have been prepared again, if they were.
    """

    path: Path
    key: str
    facts: dict[str, Any]
    report: Path
    remark: str | None = None

    @property
    def remarks(self) -> list[str]:
        """The remark, if there is one."""
        return [self.remark] if self.remark else []

    def hits_in_words(self, what_was_hit: str, hits: Mapping[str, int]) -> list[str]:
        """A line that says how often each rule applied, and where the hits are listed; none without hits."""
        counts = ", ".join(f"{rule} {count:,}" for rule, count in hits.items())
        return [f"{what_was_hit}: {counts}; each is listed in {self.report}"] if hits else []


@dataclass(frozen=True)
class FactsLayout:
    """How meta.json holds the facts about prepared files: under which name, and what else comes before the key."""

    name: str = "facts"
    header: Mapping[str, Any] = field(default_factory=dict)


USUAL_LAYOUT = FactsLayout()


def open_checked(folder: Path, expected: Expected | None, layout: FactsLayout = USUAL_LAYOUT) -> PreparedFolder | None:
    """What another process has just prepared or compared, if it has; the files that it comes from are not needed."""
    if not (expected and expected.is_checked):
        return None
    prepared, key = folder / "prepared", expected.key
    return PreparedFolder(prepared, key, _read_checked(prepared, key)[layout.name], folder / REPORT_NAME)


def prepare_once(
    folder: Path,
    ingredients: Ingredients,
    make: Callable[[Path, DataReport], dict[str, Any]],
    progress: ThrottledProgress,
    expected: Expected | None = None,
    layout: FactsLayout = USUAL_LAYOUT,
) -> PreparedFolder:
    """What `make` writes into an empty folder, unless an earlier call with the same ingredients has done it.

    It is written under another name and then renamed: a kill leaves nothing half done. `make` returns the facts. Data
    with a key other than the expected one is refused. What another process has checked is opened as it is: reading
    gigabytes once is enough.
    """
    if checked := open_checked(folder, expected, layout):
        return checked
    prepared, partial, report = folder / "prepared", folder / "prepared.partial", folder / REPORT_NAME
    before = ingredients.states()
    key = ingredients.key(FileDigests(folder / "digests.json", progress))
    if expected and expected.key != key:
        raise UserError(
            f"the contents of the data files ({', '.join(ingredients.names)}) have changed since the run in "
            f"{folder.parent} began: put them back to continue it, or choose another --out for a new run"
        )
    meta, damage = _read(prepared)
    shutil.rmtree(partial, ignore_errors=True)  # left behind by a run that was killed
    if meta is not None and meta["key"] == key and report.exists():
        return PreparedFolder(prepared, key, meta[layout.name], report)
    # One set of prepared data per folder: the report beside it always describes this one.
    shutil.rmtree(prepared, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        with DataReport(report) as entries:
            facts = make(partial, entries)
        if ingredients.states() != before:
            raise UserError(FILES_CHANGED)
        _complete(partial, {**layout.header, "key": key, layout.name: facts})
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    remark = damage and f"the prepared data in {prepared} is damaged ({damage}): it was prepared again"
    if meta is not None and meta["key"] != key:
        remark = f"the data in {prepared} was prepared from other files or settings: it was prepared again"
    return PreparedFolder(prepared, key, facts, report, remark)


def _complete(partial: Path, meta: dict[str, Any]) -> None:
    """Add what is known about prepared files to their folder, and give it its name once everything is on disk."""
    write_file(partial / "meta.json", json.dumps(meta))
    seal_folder(partial)
    partial.rename(partial.with_name("prepared"))
    flush_folder(partial.parent)


def _read(prepared: Path) -> tuple[dict[str, Any] | None, str | None]:
    """What `_complete` recorded about prepared files, if all are intact; else what is damaged, if any are there."""
    if not prepared.is_dir():
        return None, None
    if damage := find_damage(prepared):
        return None, damage
    meta: dict[str, Any] = json.loads((prepared / "meta.json").read_text(encoding="utf-8"))
    return meta, None


def _read_checked(prepared: Path, key: str) -> dict[str, Any]:
    """What is recorded about prepared files that another process has checked; they must be the same ones here."""
    damage = "it is not there" if not prepared.is_dir() else find_damage(prepared, read_all=False)
    meta = {} if damage else json.loads((prepared / "meta.json").read_text(encoding="utf-8"))
    if meta.get("key") != key:
        raise UserError(
            f"{prepared} is not what the first process has prepared ({damage or 'it is of other data'}): all processes "
            "must see the same --out folder"
        )
    return meta


@contextmanager
def spool_folder(folder: Path) -> Iterator[Path]:
    """A folder for copies of what can be read only once, such as standard input; removed afterwards."""
    spool = folder / "spooled.partial"
    shutil.rmtree(spool, ignore_errors=True)  # left behind by a run that was killed
    try:
        yield spool
    finally:
        shutil.rmtree(spool, ignore_errors=True)
