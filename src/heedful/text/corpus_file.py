"""A file of a corpus, and how it is read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from heedful.errors import UserError
from heedful.text.encodings import LineCensus
from heedful.text.text_files import (
    MAX_LINE_BYTES,
    STANDARD_INPUT,
    can_be_read_once_only,
    expand_files,
    read_line_blocks,
    spool,
)


class OnHit(Protocol):
    """Called for each line that a rule changed or left out."""

    def __call__(self, rule: str, action: str, *, file: str, line: int) -> None: ...


@dataclass(frozen=True)
class CorpusFile:
    """A file by the name it was given, the path it is read from (another one when it was spooled), and its encoding."""

    name: str
    path: Path
    encoding: str | None = None

    @property
    def shown_name(self) -> str:
        """What messages call the file."""
        return "standard input" if self.name == STANDARD_INPUT else self.name

    def line_blocks(self) -> Iterator[list[bytes]]:
        """What read_line_blocks gives of the file; too many lines that are not text are a UserError at its end."""
        census = LineCensus(self.shown_name, self.encoding)
        for lines in read_line_blocks(self.path, self.encoding, self.shown_name):
            # A longer line was cut, perhaps inside a character.
            census.look(b"\n".join(line for line in lines if len(line) <= MAX_LINE_BYTES))
            yield lines
        census.finish()


def corpus_files(patterns: Sequence[str], spool_folder: Path, encoding: str | None) -> tuple[CorpusFile, ...]:
    """The files that names and patterns stand for; what can be read only once is copied into a folder."""
    files = spooled_files((CorpusFile(name, Path(name), encoding) for name in expand_files(patterns)), spool_folder)
    if not files:
        raise UserError("No files were given: name at least one text file.")
    return files


def spooled_files(files: Iterable[CorpusFile], folder: Path) -> tuple[CorpusFile, ...]:
    """The same files, standard input and pipes copied into a folder, so that they can be read twice."""
    copies: dict[str, Path] = {}
    spooled = []
    for file in files:
        if file.name not in copies and can_be_read_once_only(file.name):
            folder.mkdir(parents=True, exist_ok=True)
            copies[file.name] = folder / f"spooled-{len(copies)}"
            spool(file.name, copies[file.name])
        spooled.append(replace(file, path=copies.get(file.name, file.path)))
    return tuple(spooled)
