"""Plain text files as documents: each file is one, or each of its lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.text.corpus_file import CorpusFile, OnHit, corpus_files
from heedful.text.document_unit import DocumentUnit
from heedful.text.encodings import LineCensus
from heedful.text.text_files import MAX_LINE_BYTES, cut_line, end_of_last_character, unpacked_blocks

# All control characters except tab and newline.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class TextPart(NamedTuple):
    """A part of a document, and whether the document ends with it."""

    text: str
    ends: bool


@dataclass(frozen=True)
class Documents:
    """The documents in some files; `files_per_corpus` is for several corpora that are to be mixed."""

    files: tuple[CorpusFile, ...]
    unit: DocumentUnit
    files_per_corpus: tuple[int, ...] = ()

    @classmethod
    def from_files(
        cls, patterns: tuple[str, ...], unit: DocumentUnit, spool_folder: Path, encoding: str | None = None
    ) -> "Documents":
        """The documents in files (or patterns); standard input is copied into a folder, to be read twice."""
        return cls(corpus_files(patterns, spool_folder, encoding, whole=unit == "file"), unit)

    def corpora(self) -> "list[Documents]":
        """The corpora that are to be mixed, each by itself; without any, these documents as one."""
        files = iter(self.files)
        split = [Documents(tuple(islice(files, count)), self.unit) for count in self.files_per_corpus]
        return split or [self]

    def parts(self, on_hit: OnHit | None) -> Iterator[TextPart]:
        """All documents, in parts of bounded size; blank documents are skipped."""
        for file in self.files:
            yield from self._lines(file, on_hit) if self.unit == "line" else _whole_file(file, on_hit)

    def _lines(self, file: CorpusFile, on_hit: OnHit | None) -> Iterator[TextPart]:
        number = 1
        for lines in file.line_blocks():
            for offset, raw in enumerate(lines):
                if len(raw) > MAX_LINE_BYTES:
                    raw = cut_line(raw)
                    if on_hit:
                        on_hit("over-long", "changed", file=file.shown_name, line=number + offset)
                text = _clean(raw, file.shown_name, number + offset, on_hit)
                if text.strip():
                    yield TextPart(text, True)
            number += len(lines)


def _whole_file(file: CorpusFile, on_hit: OnHit | None) -> Iterator[TextPart]:
    line, previous, blank = 1, "", True
    census = LineCensus(file.shown_name, file.encoding)
    for raw in _cut_blocks(file):
        census.look(raw)
        text = _clean(raw.replace(b"\r\n", b"\n"), file.shown_name, line, on_hit)
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
            cut = end_of_last_character(rest)
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _clean(raw: bytes, file: str, first_line: int, on_hit: OnHit | None) -> str:
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
        if on_hit and text.encode("utf-8") != line:
            on_hit("invalid UTF-8", "changed", file=file, line=first_line + offset)
        if on_hit and _CONTROL.search(text):
            on_hit("control characters", "changed", file=file, line=first_line + offset)
        lines.append(_CONTROL.sub(" ", text))
    return "\n".join(lines)
