"""Text files that are read whole: one by a name or a pattern, or two that are aligned."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from heedful.errors import UserError
from heedful.text.corpus_file import CorpusFile, aligned_files, spooled_files
from heedful.text.text_files import MAX_LINE_BYTES, STANDARD_INPUT, expand_files

Remark = Callable[[str], None]


def one_file(pattern: str) -> Path:
    """The one file that a name or a pattern stands for."""
    files = expand_files([pattern])
    if len(files) != 1:
        raise UserError(f"{pattern} stands for {len(files)} files: name one")
    return Path(files[0])


def read_texts(pattern: str, remark: Remark, encoding: str | None = None) -> list[str]:
    """The lines of a text file (plain, .gz or .xz); bytes that are not UTF-8 become U+FFFD, with a remark."""
    path = one_file(pattern)
    return _lines(CorpusFile(str(path), path, encoding), remark)


def _lines(file: CorpusFile, remark: Remark) -> list[str]:
    texts = []
    blocks = list(file.line_blocks())  # all, so that a bad file is refused before any remark
    for number, line in enumerate((line for lines in blocks for line in lines), 1):
        if len(line) > MAX_LINE_BYTES:
            raise UserError(f"line {number} of {file.shown_name} is longer than {MAX_LINE_BYTES:,} bytes: split it")
        try:
            texts.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            remark(f"line {number} of {file.shown_name} is not valid UTF-8: read with U+FFFD")
            texts.append(line.decode("utf-8", "replace"))
    return texts


def read_aligned(
    source: str, target: str, remark: Remark, encodings: tuple[str | None, str | None] = (None, None)
) -> tuple[list[str], list[str]]:
    """The lines of two files, by names or patterns, that must have equally many."""
    names = str(one_file(source)), str(one_file(target))
    if names[0] == names[1] == STANDARD_INPUT:
        raise UserError("standard input can be given only once")
    with tempfile.TemporaryDirectory() as folder:
        files = spooled_files(aligned_files(*names, encodings), Path(folder))
        sources, targets = (_lines(file, remark) for file in files)
    source, target = (file.shown_name for file in files)
    if len(sources) != len(targets):
        raise UserError(
            f"{source} has {len(sources):,} lines, but {target} has {len(targets):,}: each line needs its counterpart"
        )
    if not sources:
        raise UserError(f"{source} and {target} are empty")
    return sources, targets
