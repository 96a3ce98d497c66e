"""Plain text files as documents: a file is one, or each of its lines."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from heedful.errors import UserError
from heedful.text.corpus_file import CorpusFile
from heedful.text.encodings import LineCensus
from heedful.text.text_files import (
    MAX_LINE_BYTES,
    STANDARD_INPUT,
    can_be_read_once_only,
    expand_files,
    spool,
    unpacked_blocks,
)

DocumentUnit = Literal["file", "line"]

# All control characters but tab and newline.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TextPart(NamedTuple):
    """A part of a document, and whether the document ends with it."""

    text: str
    ends: bool


class TextReport:
    """Lists the lines that a rule applied to, and counts them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hits: Counter[str] = Counter()
        path.write_text("", encoding="utf-8")

    def hit(self, rule: str, file: str, line: int, action: str = "changed") -> None:
        """Note one line that was changed, or left out."""
        self.hits[rule] += 1
        with self.path.open("a", encoding="utf-8", newline="\n") as out:
            out.write(json.dumps({"rule": rule, "action": action, "file": file, "line": line}) + "\n")


@dataclass(frozen=True)
class Documents:
    """The documents in some files."""

    files: tuple[CorpusFile, ...]
    unit: DocumentUnit

    @classmethod
    def from_files(
        cls, patterns: tuple[str, ...], unit: DocumentUnit, spool_folder: Path, encoding: str | None = None
    ) -> "Documents":
        """The documents in files (or patterns); standard input is copied into a folder, to be read twice."""
        return cls(spooled_files(patterns, spool_folder, encoding), unit)

    def parts(self, report: TextReport | None) -> Iterator[TextPart]:
        """All documents, in parts of bounded size; blank documents are passed over."""
        for file in self.files:
            yield from self._lines(file, report) if self.unit == "line" else _whole_file(file, report)

    def _lines(self, file: CorpusFile, report: TextReport | None) -> Iterator[TextPart]:
        number = 1
        for lines in file.line_blocks():
            for offset, raw in enumerate(lines):
                if len(raw) > MAX_LINE_BYTES:
                    raw = raw[:MAX_LINE_BYTES]
                    if report:
                        report.hit("over-long", file.name, number + offset)
                text = _clean(raw, file.name, number + offset, report)
                if text.strip():
                    yield TextPart(text, True)
            number += len(lines)


def spooled_files(patterns: tuple[str, ...], folder: Path, encoding: str | None = None) -> tuple[CorpusFile, ...]:
    """The files that names and patterns stand for; what can be read only once is copied into a folder."""
    files = []
    for number, name in enumerate(expand_files(patterns)):
        path = Path(name)
        if can_be_read_once_only(name):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"spooled-{number}"
            spool(name, path)
        files.append(CorpusFile("standard input" if name == STANDARD_INPUT else name, path, encoding))
    if not files:
        raise UserError("No files were given: name at least one text file.")
    return tuple(files)


def _whole_file(file: CorpusFile, report: TextReport | None) -> Iterator[TextPart]:
    line, previous, blank = 1, "", True
    census = LineCensus(file.shown_name, file.encoding)
    for raw in _cut_blocks(file):
        census.look(raw)
        text = _clean(raw.replace(b"\r\n", b"\n"), file.name, line, report)
        line += raw.count(b"\n")
        if not blank:
            yield TextPart(previous, False)
            previous = ""
        previous += text
        blank = blank and not text.strip()
    census.finish()
    if not blank:
        yield TextPart(previous, True)


def _cut_blocks(file: CorpusFile) -> Iterator[bytes]:
    """The bytes of a file, cut after line ends if there are any, else before spaces, and never in a character."""
    rest = b""
    for block in unpacked_blocks(file.path, file.encoding, file.shown_name):
        rest += block
        cut = rest.rfind(b"\n") + 1 or rest.rfind(b" ")
        if cut <= 0:
            cut = _end_of_last_character(rest)
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _end_of_last_character(raw: bytes) -> int:
    """Where to cut bytes without cutting a character of UTF-8, whose first byte is among the last four."""
    end = len(raw)
    for begin in range(end - 1, max(end - 5, -1), -1):
        if raw[begin] >= 0xC0:  # it says how many bytes follow it
            size = 2 + (raw[begin] >= 0xE0) + (raw[begin] >= 0xF0)
            return end if begin + size <= end else begin
        if raw[begin] < 0x80:
            break
    return end


def _clean(raw: bytes, file: str, first_line: int, report: TextReport | None) -> str:
    """The text of some bytes by the rules; only text that needs it is looked at line by line."""
    try:
        text = raw.decode("utf-8")
        if not _CONTROL.search(text):
            return text
    except UnicodeDecodeError:
        pass
    lines = []
    for offset, line in enumerate(raw.split(b"\n")):
        text = line.decode("utf-8", "replace")
        if report and text.encode("utf-8") != line:
            report.hit("invalid UTF-8", file, first_line + offset)
        if report and _CONTROL.search(text):
            report.hit("control characters", file, first_line + offset)
        lines.append(_CONTROL.sub(" ", text))
    return "\n".join(lines)
