"""A file of a corpus, and how it is read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from heedful.errors import UserError
from heedful.text.encodings import IsUtf8Error, LineCensus, Utf8Check
from heedful.text.text_files import (
    MAX_LINE_BYTES,
    OLD_LINE_ENDS,
    STANDARD_INPUT,
    can_be_read_once_only,
    expand_files,
    looks_like_old_line_ends,
    read_line_blocks,
    spool,
    unpacked_bytes,
)


class OnHit(Protocol):
    """Called for each line that a rule changed or left out."""

    def __call__(self, rule: str, action: str, *, file: str, line: int) -> None: ...


@dataclass(frozen=True)
class CorpusFile:
    """A file by the name it was given, the path it is read from (another one when it was spooled), and its encoding.

    A file that is one side of a corpus knows which, and the file of the other side.
    """

    name: str
    path: Path
    encoding: str | None = None
    side: Literal["source", "target"] | None = None
    beside: Path | None = None

    @property
    def shown_name(self) -> str:
        """What messages call the file."""
        return "standard input" if self.name == STANDARD_INPUT else self.name

    def line_blocks(self) -> Iterator[list[bytes]]:
        """What read_line_blocks gives for the file; too many lines that are not text are a UserError at its end."""
        census = LineCensus(self.shown_name, self.encoding, self._encoding_option)
        newlines, returns = -1, 0
        try:
            for lines in read_line_blocks(self.path, self.encoding, self.shown_name):
                # A longer line was cut, perhaps inside a character.
                census.look(b"\n".join(line for line in lines if len(line) <= MAX_LINE_BYTES))
                newlines += len(lines)
                returns += lines[0].count(b"\r") if newlines == 0 else 0
                yield lines
        except IsUtf8Error as error:
            raise self._with_sides(error) from None
        if looks_like_old_line_ends(newlines, returns):
            raise UserError(f"{self.shown_name} is one line, with {returns:,} carriage returns in it: {OLD_LINE_ENDS}")
        census.finish()

    def _with_sides(self, error: IsUtf8Error) -> UserError:
        if self.side is None:
            return error
        other = "target" if self.side == "source" else "source"
        return UserError(
            f"{error}; if that is the encoding of the {other} side, give --{other}-encoding {self.encoding} instead"
        )

    def _encoding_option(self) -> str:
        """The option that says how to read the file: one for its side alone, if the other side is UTF-8."""
        if self.side is None or self.beside is None or not self.beside.is_file():
            return "--encoding"
        check = Utf8Check()
        for block in unpacked_bytes(self.beside):
            check.look(block)
        return f"--{self.side}-encoding" if check.finish() else "--encoding"


def aligned_files(
    source: str, target: str, encodings: tuple[str | None, str | None] = (None, None)
) -> tuple[CorpusFile, CorpusFile]:
    """Two files that are the sides of a corpus, each with its encoding."""
    source_path, target_path = Path(source), Path(target)
    return (
        CorpusFile(source, source_path, encodings[0], "source", target_path),
        CorpusFile(target, target_path, encodings[1], "target", source_path),
    )


def corpus_files(
    patterns: Sequence[str], spool_folder: Path, encoding: str | None, whole: bool = False
) -> tuple[CorpusFile, ...]:
    """The files that names and patterns stand for; what can be read only once is copied into a folder."""
    named = (CorpusFile(name, Path(name), encoding) for name in expand_files(patterns))
    files = spooled_files(named, spool_folder, whole)
    if not files:
        raise UserError("no files were given: name at least one text file")
    return files


def spooled_files(files: Iterable[CorpusFile], folder: Path, whole: bool = False) -> tuple[CorpusFile, ...]:
    """The same files, standard input and pipes copied into a folder, so that they can be read twice.

    Files that are each read as one `whole` text may have lines of any length.
    """
    copies: dict[str, Path] = {}
    spooled = []
    for file in files:
        if file.name not in copies and can_be_read_once_only(file.name):
            folder.mkdir(parents=True, exist_ok=True)
            copies[file.name] = folder / f"spooled-{len(copies)}"
            spool(file.name, copies[file.name], whole)
        spooled.append(replace(file, path=copies.get(file.name, file.path)))
    return tuple(spooled)
