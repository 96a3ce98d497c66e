"""A file of a corpus, and how it is read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heedful.text.encodings import LineCensus
from heedful.text.text_files import MAX_LINE_BYTES, STANDARD_INPUT, read_line_blocks


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
